import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { hook, making, outputs, outside, results, saying, stage } from '../../../../../test/support/hooks.ts'
import { events, says } from '../../../../../test/support/host.ts'
import { until } from '../../../../../test/support/until.ts'
import { startTick } from '../../../../kit/proc.ts'

const write = ['file_write', { path: 'a.txt', content: 'x' }] as const
const veto = { verdict: 'veto', reason: 'not on a Friday' }

const receipts = ({ home }: { readonly home: string }) =>
  readFileSync(join(home, 'tool_receipts.log'), 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line): { [key: string]: unknown } => JSON.parse(line))

describe('before a call', () => {
  test('a veto refuses it; result and receipt name the hook', async () => {
    await using on = await stage({ hooks: { friday: hook('before_tool', saying(veto, 'SEEN')) } })
    const conversation = await on.begin(making(write))
    expect(await results(conversation)).toEqual(['Denied by hook.friday: not on a Friday'])
    expect(existsSync(join(on.cwd, 'a.txt'))).toBe(false)
    expect(receipts(on)).toMatchObject([{ tool: 'file_write', status: 'denied', error: 'hook.friday: not on a Friday' }])
    expect(on.seen()).toMatchObject([
      {
        ...{ event: 'before_tool', hook: 'friday', tool: 'file_write', input: write[1], gate: 'allow', workspace: on.cwd, dry_run: false },
        paths: [join(on.cwd, 'a.txt')],
      },
    ])
  })

  test('a replay asks no hook and gives the same verdict', async () => {
    await using on = await stage({ hooks: { friday: hook('before_tool', saying(veto, 'SEEN')) } })
    const conversation = await on.begin(making(write))
    const before = await events(conversation)
    const runId = conversation.runId() ?? ''
    await conversation.close()
    const asked = on.seen().length
    const replayed = await on.host.replay(runId, [])
    expect(outputs(replayed.events)).toEqual(outputs(before))
    expect(on.seen()).toHaveLength(asked)
  })

  test('a question at a level that asks nothing: after a yes the receipt names who said it and the hook', async () => {
    await using on = await stage({ hooks: { careful: hook('before_tool', saying({ verdict: 'ask', reason: 'sure?' })) } })
    const conversation = await on.begin(making(write))
    for await (const event of conversation.run('go'))
      if (event.type === 'approval_gate') {
        const question = conversation.gate(event.gateId)
        expect(question?.judgement).toMatchObject({ verdict: 'ask', rule: 'hook.careful', reason: 'sure?' })
        if (question) expect([conversation.allowAlways(question), conversation.isStanding(question)]).toEqual([undefined, false])
        await conversation.approve(event.gateId, { allow: true, by: 'ann' })
      }
    expect(on.read('a.txt')).toBe('x')
    expect(receipts(on)).toMatchObject([{ status: 'allowed', approval: 'ann (hook.careful asked)' }])
  })

  test('a veto is stronger than a question of another hook', async () => {
    const hooks = { a: hook('before_tool', saying({ verdict: 'ask' })), b: hook('before_tool', saying(veto)) }
    await using on = await stage({ hooks })
    expect(await results(await on.begin(making(write)))).toEqual(['Denied by hook.b: not on a Friday'])
  })

  test('a call that the gate denies is no question for a hook, and what asks goes on asking', async () => {
    const silent = hook('before_tool', saying({}, 'SEEN'))
    await using denying = await stage({ hooks: { silent }, config: '[security]\nautonomy = "readonly"\n' })
    expect(await results(await denying.begin(making(write)))).toEqual([expect.stringContaining('Denied by autonomy.readonly')])
    expect(denying.seen()).toEqual([])
    await using asking = await stage({ hooks: { silent }, config: '' })
    const conversation = await asking.begin(making(write))
    for await (const event of conversation.run('go'))
      if (event.type === 'approval_gate') await conversation.approve(event.gateId, { allow: false, by: 'ann' })
    expect(asking.seen()).toMatchObject([{ gate: 'ask' }])
    expect(existsSync(join(asking.cwd, 'a.txt'))).toBe(false)
  })

  test('only the calls that its patterns match', async () => {
    const more = `${outside}tools = ["file_*"]\npaths = ["**/.env*"]\n`
    await using on = await stage({ hooks: { env: hook('before_tool', saying(veto), more) }, files: { 'sub/.env.local': 'KEY=1' } })
    const calls = [['file_list', {}], write, ['file_read', { path: 'sub/.env.local' }]] as const
    const [list, written, read] = await results(await on.begin(making(...calls)))
    expect(list).toContain('notes.md')
    expect(written).not.toContain('hook.env')
    expect(read).toStartWith('Denied by')
    expect(on.read('a.txt')).toBe('x')
  })

  test('text for the model follows the result', async () => {
    await using on = await stage({ hooks: { hint: hook('before_tool', saying({ context: 'files end with a line break' })) } })
    expect(await results(await on.begin(making(write)))).toEqual([
      expect.stringMatching(/^created .*\n\[hook\.hint adds: files end with a line break\]$/s),
    ])
  })
})

describe('a hook that fails', () => {
  test.each([
    ['an exit code', 'echo no luck >&2; exit 3', 'it ended with exit code 3: no luck'],
    ['exit code 2 as well', 'exit 2', 'it ended with exit code 2'],
    ['garbage', 'echo {oops', 'which is not one JSON object'],
    ['a list', 'echo []', 'which is not one JSON object'],
    ['two objects', 'echo {}; echo {}', 'which is not one JSON object'],
    ['an unknown key', 'echo \'{"allow":true}\'', '"allow": true; allowed are texts for verdict, reason, context'],
    ['a permission', 'echo \'{"verdict":"allow"}\'', 'A hook cannot permit anything'],
    ['a program that does not exist', 'no-such-program', 'exit code 127'],
    ['100 MB', 'yes | head -c 100000000', 'it printed more than 1048576 bytes and was stopped'],
  ])('%s: the call is refused', async (_, run, why) => {
    await using on = await stage({ hooks: { bad: hook('before_tool', run) } })
    const [result = ''] = await results(await on.begin(making(write)))
    expect(result).toStartWith('Denied by hook.bad: the hook failed, which refuses: ')
    expect(result).toContain(why)
    expect(existsSync(join(on.cwd, 'a.txt'))).toBe(false)
  })

  test('too long: it is ended with its group, and the call is refused', async () => {
    await using on = await stage({
      hooks: { slow: hook('before_tool', 'sleep 60 & echo $! > SEEN; sleep 60', `${outside}timeout_s = 0.5\n`) },
    })
    expect(await results(await on.begin(making(write)))).toEqual([expect.stringContaining('it took longer than 0.5 s and was stopped')])
    expect(startTick(Number(readFileSync(join(on.home, 'seen'), 'utf8')))).toBeUndefined()
  })

  test('three in a row switch it off with one line; until then calls are refused, and a success counts anew', async () => {
    const run = 'n=$(wc -l < SEEN 2>/dev/null || echo 0); echo {} >> SEEN; [ $n = 2 ]'
    await using on = await stage({ hooks: { moody: hook('before_tool', run) } })
    const calls = Array.from({ length: 8 }, (_, at) => ['file_write', { path: `${at}.txt`, content: 'x' }] as const)
    const told = await results(await on.begin(making(...calls)))
    expect(told.map((text) => text.startsWith('Denied'))).toEqual([true, true, false, true, true, true, false, false])
    expect(on.seen()).toHaveLength(6)
    expect(on.lines.filter((line) => line.includes('is off for the rest of this conversation after 3 failures in a row'))).toHaveLength(1)
  })

  test('a cancelled turn ends it at once', async () => {
    await using on = await stage({ hooks: { slow: hook('before_tool', 'echo $$ > SEEN; sleep 60') } })
    const conversation = await on.begin(making(write))
    const turn = events(conversation)
    const pid = () => (existsSync(join(on.home, 'seen')) ? Number(readFileSync(join(on.home, 'seen'), 'utf8')) : 0)
    await until(() => pid() > 0)
    conversation.cancel()
    expect(await turn).toContainEqual({ type: 'done', stopReason: 'cancelled' })
    expect(startTick(pid())).toBeUndefined()
  })

  test('one that starts BraidClaw again does not run inside itself', async () => {
    await using on = await stage({ hooks: { loop: hook('before_tool', 'exit 0') } })
    const setup = on.setup()
    Object.assign(setup.context.env, { BRAIDCLAW_HOOKS: 'other:loop' })
    const conversation = await on.begin(making(write), { setup })
    expect(await results(conversation)).toEqual([expect.stringContaining('it started this run itself, and does not run inside itself')])
  })
})

describe('around a turn', () => {
  test('text of session_start and prompt reaches the model with the message, the first only once', async () => {
    const hooks = {
      status: hook('session_start', saying({ context: 'branch main' }, 'SEEN')),
      tone: hook('prompt', saying({ context: 'be brief' })),
    }
    await using on = await stage({ hooks })
    const read: string[] = []
    const conversation = await on.begin(async function* (messages) {
      const last = messages.at(-1)
      if (last?.role === 'user') read.push(last.content)
      yield { type: 'text', content: 'ok' }
    })
    await events(conversation, 'hello')
    await events(conversation, 'again')
    expect(read).toEqual(['hello\n\n[hook.status adds: branch main]\n\n[hook.tone adds: be brief]', 'again\n\n[hook.tone adds: be brief]'])
    expect(on.seen()).toMatchObject([{ event: 'session_start', source: 'startup' }])
  })

  test('a veto of the prompt: nobody is asked, and the turn ends as denied', async () => {
    await using on = await stage({ hooks: { words: hook('prompt', saying(veto, 'SEEN')) } })
    const conversation = await on.begin(says('never'))
    const message = 'hook.words: not on a Friday'
    expect(await events(conversation)).toEqual([
      { type: 'error', code: 'denied', message, recoverable: true },
      { type: 'done', stopReason: 'error' },
    ])
    expect(conversation.ending()).toEqual({ stop: 'error', code: 'denied', message })
    expect(on.seen()).toMatchObject([{ event: 'prompt', prompt: 'go' }])
  })

  test('after a call: text and objections follow the result, which stays as it is', async () => {
    const hooks = { size: hook('after_tool', saying({ verdict: 'veto', reason: 'too short', context: 'one byte' }, 'SEEN')) }
    await using on = await stage({ hooks })
    expect(await results(await on.begin(making(write)))).toEqual([
      expect.stringMatching(/^created .*\n\[hook\.size adds: one byte\]\n\[hook\.size objects, after the call: too short\]$/s),
    ])
    expect(on.read('a.txt')).toBe('x')
    expect(on.seen()).toMatchObject([{ event: 'after_tool', outcome: { status: 'allowed' } }])
  })

  test('a question and the end of a turn are told', async () => {
    const hooks = { bell: hook('notification', saying({}, 'SEEN')), end: hook('stop', saying({}, 'SEEN')) }
    await using on = await stage({ hooks, config: '' })
    const conversation = await on.begin(making(write))
    for await (const event of conversation.run('go')) {
      if (event.type !== 'approval_gate') continue
      await until(() => on.seen().length > 0)
      await conversation.approve(event.gateId, { allow: true, by: 'ann' })
    }
    expect(on.seen()).toMatchObject([
      { event: 'notification', tool: 'file_write', message: 'a call of file_write waits for a yes' },
      { event: 'stop', stop: 'end_turn' },
    ])
  })

  test('secrets do not reach a hook', async () => {
    await using on = await stage({ hooks: { log: hook('prompt', saying({}, 'SEEN')) } })
    on.host.setup.redactor.register('secret-Zx81kdQpLm20vBnTy77', 'KEY')
    await events(await on.begin(says('ok')), 'it is secret-Zx81kdQpLm20vBnTy77')
    expect(JSON.stringify(on.seen())).not.toContain('Zx81kd')
    expect(on.seen()).toHaveLength(1)
  })
})
