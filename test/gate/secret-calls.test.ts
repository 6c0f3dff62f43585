/** Taking secrets out never changes an action: a call is carried out as it is, or refused by name. */

import { describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createAgent, type ModelCall } from '../../src/agent.ts'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { findBelow, findIn } from '../support/secrets.ts'
import { isDeep } from '../support/tier.ts'
import { alone, asksFirst, call, home, scripted, turn } from '../support/turns.ts'

const key = 'sk-9f3kQ27xLmZ0pTv4'
const real = { OPENAI_API_KEY: key }
const yes = ['--approve-all-medium']
const secrets = [{ name: 'the key', value: key }]
const uses =
  '\n[providers.models.far]\nkind = "openai-compatible"\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\napi_key_env = "OPENAI_API_KEY"\n'
const told = { text: 'told: {{last_tool_result}}' }
const label = '[redacted:OPENAI_API_KEY]'

/** The records agree, and hold no secret. */
async function isSound(at: Nest): Promise<void> {
  const more = [
    ['replay', '--all'],
    ['rebuild', '--check'],
  ]
  for (const words of [['receipt', 'verify', '--deep'], ...(isDeep ? more : [])])
    expect({ words, code: (await at.run(words, { env: real })).code }).toEqual({ words, code: 0 })
  expect(findBelow(at.home, secrets)).toEqual([])
}

const dummies = [
  ['not-needed-here', 'consists of letters and dashes alone'],
  ['ollama', 'is shorter than 12 characters'],
] as const

describe.each(isDeep ? dummies : dummies.slice(0, 1))('a key that looks like a placeholder: %s', (dummy, why) => {
  const env = { OPENAI_API_KEY: dummy }

  test.if(needs('bwrap'))('what holds the word is written, made and told as it is', async () => {
    using at = home(uses)
    const calls = [
      call('file_write', { path: 'note.txt', content: `${dummy} serve\n` }),
      call('shell', { command: `mkdir ${dummy}` }),
      call('file_read', { path: 'note.txt' }),
    ]
    const { code, stdout } = await turn(at, [...calls, told], yes, { env })
    expect([code, readFileSync(join(at.workspace, 'note.txt'), 'utf8')]).toEqual([0, `${dummy} serve\n`])
    expect([existsSync(join(at.workspace, dummy)), stdout.includes(`${dummy} serve`)]).toEqual([true, true])
  })

  test('that nobody looks for it is said once in a home, without its value', async () => {
    using at = home(uses)
    const [first, second] = [await turn(at, [told], [], { env }), await turn(at, [told], [], { env })]
    expect(first.stderr).toContain(`warn: the key in OPENAI_API_KEY ${why}, so it looks like a placeholder and is not hidden: `)
    expect([first.stderr.includes(dummy), second.stderr]).toEqual([false, ''])
    expect((await at.run(['doctor'], { env })).stdout).toContain(`OPENAI_API_KEY ${why}`)
  })

  test.if(needs('bwrap'))('a yes that is given elsewhere is for exactly that plan', async () => {
    using at = home(uses, asksFirst)
    const replies = [call('shell', { command: `mkdir ${dummy}` }), told]
    expect((await turn(at, replies, [], { env, through: alone })).code).toBe(4)
    const [{ id, summary }] = JSON.parse((await at.run(['approvals', 'list', '--json'], { env })).stdout)
    expect(summary).toBe(`shell: /usr/bin/mkdir ${dummy}`)
    expect((await at.run(['approvals', 'allow', id], { env })).code).toBe(0)
    expect((await turn(at, replies, ['-c'], { env, through: alone })).code).toBe(0)
    expect(readdirSync(at.workspace)).toContain(dummy)
  })
})

describe('a secret in the arguments is refused by the name of its variable', () => {
  const calls: readonly (readonly [string, string, object])[] = [
    ['a file that would hold it', 'file_write', { path: 'a.txt', content: `key=${key}` }],
    ['a file that would be called so', 'file_write', { path: `${key}.txt`, content: 'x' }],
    ['an edit that would put it in', 'file_edit', { path: 'old.txt', old: 'hello', new: key }],
    ['an argument of a command', 'shell', { command: `touch ${key}` }],
    ['a script', 'shell', { command: `echo ${key} > a.txt && touch b.txt` }],
    ['a request', 'http', { url: 'http://127.0.0.1:9/', method: 'POST', body: JSON.stringify({ key }) }],
    ['in base64', 'file_write', { path: 'a.txt', content: Buffer.from(`x${key}`).toString('base64') }],
    ['a tool of one’s own', 'keep', { text: key }],
    ['what only looks', 'search', { pattern: key }],
  ]

  function prepared(): Nest {
    const at = home(`\n[tools]\nexecutables = ["keep"]\n${uses}`)
    at.file('old.txt', 'hello\n')
    const folder = join(at.home, '.braidclaw/tools')
    mkdirSync(folder, { recursive: true })
    const described = { name: 'keep', description: 'Keeps.', parameters: { type: 'object', properties: { text: { type: 'string' } } } }
    writeFileSync(
      join(folder, 'keep.sh'),
      `#!/bin/sh\n[ "$1" = --describe ] && echo '${JSON.stringify(described)}' || echo "$1" > kept.txt\n`,
    )
    chmodSync(join(folder, 'keep.sh'), 0o755)
    return at
  }

  test.if(needs('bwrap')).each(calls.filter((_, at) => isDeep || at % 2 === 0 || at === 5))('%s', async (_, tool, input) => {
    using at = prepared()
    const { code, stdout, stderr } = await turn(at, [call(tool, input), told], [...yes, '--autonomy', 'full'], { env: real })
    expect(code).toBe(3)
    expect(stdout).toContain('redaction.secret: the arguments hold the value of OPENAI_API_KEY')
    expect(findIn('streams', stdout + stderr, secrets)).toEqual([])
    expect(readdirSync(at.workspace)).toEqual(['old.txt'])
    expect(readFileSync(join(at.workspace, 'old.txt'), 'utf8')).toBe('hello\n')
    await isSound(at)
  })

  test('also when the operator calls the tool, and policy explain says so', async () => {
    using at = prepared()
    const args = JSON.stringify({ path: 'a.txt', content: key })
    const run = await at.run(['tool', 'run', 'file_write', '--json', args, '--approve-all-medium'], { env: real })
    expect([run.code, run.stderr.includes('the value of OPENAI_API_KEY'), readdirSync(at.workspace)]).toEqual([3, true, ['old.txt']])
    const { stdout } = await at.run(['policy', 'explain', '--tool', 'file_write', '--args', args], { env: real })
    expect(stdout).toContain('redaction.secret (')
    expect(findIn('streams', run.stdout + run.stderr + stdout, secrets)).toEqual([])
  })

  test('in the library', async () => {
    using at = home()
    const writes: ModelCall = async function* (messages) {
      const last = messages.at(-1)
      if (last?.role === 'tool') yield { type: 'text', content: JSON.stringify(messages) }
      else yield { type: 'tool_use', name: 'file_write', input: { path: 'a.txt', content: key } }
    }
    const options = { cwd: at.workspace, home: join(at.dir, 'library'), env: { HOME: at.home, ...real } }
    const agent = createAgent({ ...options, permissionMode: 'full', modelCall: writes })
    const seen: unknown[] = []
    for await (const event of agent.run('go')) seen.push(event)
    await agent.close()
    expect([agent.ending()?.code, readdirSync(at.workspace)]).toEqual(['denied', []])
    expect(JSON.stringify(seen)).toContain('the value of OPENAI_API_KEY')
    expect(findIn('events', JSON.stringify(seen), secrets)).toEqual([])
    expect(findBelow(at.dir, secrets)).toEqual([])
  })
})

describe('the label that stands for a hidden value', () => {
  test.each([
    ['file_write', { path: 'conf', content: `key = ${label}\ncolour = red\n` }],
    ['file_edit', { path: 'conf', old: 'colour = blue', new: `key = ${label}` }],
    ['shell', { command: `echo '${label}' > conf` }],
  ])('%s does not put it in the place of the value', async (tool, input) => {
    using at = home()
    at.file('conf', `key = ${key}\ncolour = blue\n`)
    const replies = [call('file_read', { path: 'conf' }), call(tool, input), told]
    const { code, stdout } = await turn(at, replies, [...yes, '--autonomy', 'full'], { env: real })
    expect([code, stdout.includes(`redaction.label: ${label} stands for a value that is hidden from you`)]).toEqual([3, true])
    expect(readFileSync(join(at.workspace, 'conf'), 'utf8')).toBe(`key = ${key}\ncolour = blue\n`)
  })

  test('what stands around it can be changed, and it can be looked for', async () => {
    using at = home()
    at.file('conf.md', `key = ${key}\ncolour = blue\n`)
    const replies = [call('search', { pattern: label }), call('file_edit', { path: 'conf.md', old: 'blue', new: 'red' }), told]
    expect((await turn(at, replies, yes, { env: real })).code).toBe(0)
    expect(readFileSync(join(at.workspace, 'conf.md'), 'utf8')).toBe(`key = ${key}\ncolour = red\n`)
  })
})

test('an agent that our model thinks for is not handed a call with something else in the place of a secret', async () => {
  using at = home()
  const replies = scripted(at, [{ ...call('write', { text: key }), text: 'now' }])
  const dir = join(at.dir, 'fifos')
  const brain = at.start(['bridge', 'brain', '--fifo-dir', dir], { env: { ...replies.env, ...real } })
  await brain.says('ready: ')
  const ask = Bun.spawn(
    [
      'sh',
      '-c',
      'printf \'%s\\n\\n\' "$1" > brain_in & timeout 5 head -n 1 brain_out',
      'sh',
      '{"messages":[{"role":"user","content":"go"}]}',
    ],
    { cwd: dir },
  )
  const answer = JSON.parse(await ask.stdout.text())
  process.kill(brain.pid, 'SIGTERM')
  await brain.result
  expect(answer.stop_reason).toBe('end_turn')
  expect(answer.content).toEqual([
    { type: 'text', text: 'now' },
    { type: 'text', text: '(The call of write was left out: its arguments hold the value of OPENAI_API_KEY.)' },
  ])
})
