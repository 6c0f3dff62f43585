import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hook, making, results, saying, stage } from '../../../../../test/support/hooks.ts'
import { needs } from '../../../../../test/support/needs.ts'

const real = test.if(needs('bwrap'))
const write = (path: string, content: string) => ['file_write', { path, content }] as const
const shell = (command: string) => ['shell', { command }] as const
const writes = 'write = true\n'

describe('in the sandbox', () => {
  real('a hook reads its input, the workspace and its own folder, and writes nowhere', async () => {
    const run = [
      'cat > /tmp/in && grep -q before_tool /tmp/in || exit 1',
      'cat notes.md "$BRAIDCLAW_HOOK_DIR/words" >&2',
      'for path in made notes.md "$BRAIDCLAW_HOOK_DIR/words"; do echo x 2>/dev/null > $path && exit 9; done',
      'cat "$BRAIDCLAW_HOOK_DIR/../config.toml" 2>/dev/null && exit 8',
      'exit 4',
    ].join('\n')
    await using on = await stage({ hooks: { look: hook('before_tool', run, '') } })
    writeFileSync(join(on.home, 'hooks/words'), 'beside the hook')
    const [result = ''] = await results(await on.begin(making(write('a.txt', 'x'))))
    expect(result).toEndWith('it ended with exit code 4: hello beside the hook')
    expect(existsSync(join(on.cwd, 'made'))).toBe(false)
    expect([on.read('notes.md'), readFileSync(join(on.home, 'hooks/words'), 'utf8')]).toEqual(['hello\n', 'beside the hook'])
  })

  real('an input of a megabyte arrives whole, and one that reads nothing of it ends all the same', async () => {
    const content = 'é'.repeat(500_000)
    const hooks = { count: hook('before_tool', 'printf \'{"context":"%s bytes"}\' $(wc -c)', ''), deaf: hook('before_tool', ':', '') }
    await using on = await stage({ hooks })
    const [result = ''] = await results(await on.begin(making(write('a.txt', content))))
    expect(Number(/adds: (\d+) bytes/.exec(result)?.[1])).toBeGreaterThan(1_000_000)
  })
})

describe('what a hook changes after a call', () => {
  const upper = "sed -i 's/.*/\\U&/' a.txt"

  real('is applied and said, is not refused as unseen at the next write, and can be undone', async () => {
    await using on = await stage({ hooks: { upper: hook('after_tool', upper, `${writes}tools = ["file_*"]\npaths = ["*.txt"]\n`) } })
    const edit = ['file_edit', { path: 'a.txt', old: 'TWO', new: 'three' }] as const
    const [first = '', second = ''] = await results(await on.begin(making(write('a.txt', 'one two'), edit)))
    expect(first).toContain('[hook.upper changed the workspace (1 file: 1 changed: a.txt)')
    expect(second).toStartWith('edited a.txt')
    expect(on.read('a.txt')).toBe('ONE THREE')
    const { store } = await on.host.changes()
    const sets = await store.list()
    expect(sets.filter(({ about }) => about.tool === 'hook.upper')).toHaveLength(2)
  })

  real('is judged like the changes of a command: at readonly, or where a question is needed, nothing is applied', async () => {
    const run = 'mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit'
    await using on = await stage({ hooks: { evil: hook('after_tool', run, writes) } })
    const [result = ''] = await results(await on.begin(making(write('a.txt', 'x'))))
    expect(result).toContain('[hook.evil changed nothing. It wanted: ')
    expect(existsSync(join(on.cwd, '.git'))).toBe(false)
    await using supervised = await stage({ hooks: { evil: hook('after_tool', 'echo {} > package.json', writes) }, config: '' })
    const conversation = await supervised.begin(making(write('a.txt', 'x')))
    for await (const event of conversation.run('go'))
      if (event.type === 'approval_gate') await conversation.approve(event.gateId, { allow: true, by: 'ann' })
      else if (event.type === 'tool_result') expect(String(event.output)).toContain('[hook.evil changed nothing. It wanted: ')
    expect([existsSync(join(supervised.cwd, 'a.txt')), existsSync(join(supervised.cwd, 'package.json'))]).toEqual([true, false])
  })

  real('follows the changes of a command, too', async () => {
    await using on = await stage({ hooks: { upper: hook('after_tool', upper, `${writes}tools = ["shell"]\npaths = ["a.txt"]\n`) } })
    const [result = ''] = await results(await on.begin(making(shell('echo one > a.txt'))))
    expect(result).toContain('[hook.upper changed the workspace (1 file: 1 changed: a.txt)')
    expect(on.read('a.txt')).toBe('ONE\n')
  })

  real('of a hook that fails is dropped', async () => {
    await using on = await stage({ hooks: { half: hook('after_tool', 'echo half > a.txt; exit 1', writes) } })
    const [result = ''] = await results(await on.begin(making(write('a.txt', 'whole'))))
    expect(result).toContain('[hook.half objects, after the call: the hook failed')
    expect(on.read('a.txt')).toBe('whole')
  })

  real('is applied nowhere in a dry run', async () => {
    await using on = await stage({ hooks: { upper: hook('after_tool', 'echo x > b.txt', writes) } })
    const [result = ''] = await results(await on.begin(making(['file_read', { path: 'notes.md' }]), { dryRun: true }))
    expect(result).toContain('[hook.upper changed nothing.')
    expect(existsSync(join(on.cwd, 'b.txt'))).toBe(false)
  })
})

real('an "always" is no answer to a hook that asks about a command', async () => {
  await using on = await stage({ hooks: { ask: hook('before_tool', saying({ verdict: 'ask' })) }, config: '[security]\nask = "before"\n' })
  const conversation = await on.begin(making(shell('touch b.txt')))
  for await (const event of conversation.run('go'))
    if (event.type === 'approval_gate') {
      const question = conversation.gate(event.gateId)
      expect(question && conversation.allowAlways(question)).toBeUndefined()
      await conversation.approve(event.gateId, { allow: false, by: 'ann' })
    }
})

describe('the changes of a command', () => {
  const guard = 'tools = ["shell"]\npaths = ["**/.env", "**/.env.*"]\nsandbox = false\n'

  real('are vetoed: they never enter the workspace, and the receipt names the hook', async () => {
    await using on = await stage({ hooks: { env: hook('changes', saying({ verdict: 'veto', reason: 'keys' }, 'SEEN'), guard) } })
    const [result = ''] = await results(await on.begin(making(shell('echo KEY=1 > .env; echo x > b.txt'))))
    expect(result).toContain('hook.env: keys')
    expect([existsSync(join(on.cwd, '.env')), existsSync(join(on.cwd, 'b.txt'))]).toEqual([false, false])
    expect(readFileSync(join(on.home, 'tool_receipts.log'), 'utf8')).toContain('"error":"hook.env: keys"')
    expect(on.seen()).toMatchObject([
      {
        event: 'changes',
        changes: [
          { path: '.env', change: 'created' },
          { path: 'b.txt', change: 'created' },
        ],
        gate: 'ask',
      },
    ])
    expect(await results(await on.begin(making(shell('echo x > b.txt'))))).toEqual(['(no output)'])
  })

  real('are asked about, and a yes applies them', async () => {
    await using on = await stage({ hooks: { env: hook('changes', saying({ verdict: 'ask', reason: 'keys' }), guard) } })
    const conversation = await on.begin(making(shell('echo KEY=1 > .env')))
    for await (const event of conversation.run('go'))
      if (event.type === 'approval_gate') {
        expect(event.changes).toMatchObject({ verdict: 'ask', rule: 'hook.env', reason: 'keys' })
        await conversation.approve(event.gateId, { allow: true, by: 'ann' })
      }
    expect(on.read('.env')).toBe('KEY=1\n')
    expect(readFileSync(join(on.home, 'tool_receipts.log'), 'utf8')).toContain('"approval":"ann (hook.env asked)"')
  })
})
