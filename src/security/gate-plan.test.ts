import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '../kit/json.ts'
import type { Call } from '../runtime/event.ts'
import type { Touch } from '../runtime/port.ts'
import { callOf, gateOf, said, tool } from './gate.fixture.ts'
import type { GateOptions } from './gate.ts'
import type { Policy } from './policy.ts'

describe('the plan', () => {
  test('is what the executor gets: resolved path, argv and executable', async () => {
    const gate = gateOf({ autonomy: 'full' })
    const read = await gate.judge(callOf('file_read', { path: './a/../b' }))
    expect(gate.plan(read.plan)?.paths).toEqual([{ given: './a/../b', path: '/home/u/ws/b', access: 'read' }])
    expect(read.summary).toBe('file_read: read /home/u/ws/b')
    const list = await gate.judge(callOf('shell', { command: 'ls "-l"', cwd: 'sub' }))
    expect(gate.plan(list.plan)?.commands).toEqual([
      { plan: { kind: 'argv', argv: ['ls', '-l'], executable: '/usr/bin/ls' }, cwd: '/home/u/ws/sub' },
    ])
    expect(list.summary).toBe('shell: /usr/bin/ls -l')
    const get = await gate.judge(callOf('http', { url: 'HTTPS://EXAMPLE.com/x#y' }))
    expect(gate.plan(get.plan)?.urls).toEqual([{ url: 'https://example.com/x', method: 'GET' }])
    expect(gate.plan('forged')).toBeUndefined()
  })

  test('is the same for the same call, and another for any other arguments, conversation, policy, environment or target', async () => {
    const write = callOf('file_write', { path: 'a' })
    const hashOf = async (call: Call, fields: Partial<Policy> = {}, options: Partial<GateOptions> = {}) =>
      (await gateOf(fields, options).judge(call)).plan
    const same = await hashOf(write)
    expect(await hashOf({ ...write, id: 'call_2' })).toBe(same)
    const others = [
      await hashOf(callOf('file_write', { path: './a' })),
      await hashOf(write, {}, { conversation: 'c2' }),
      await hashOf(write, { allowedPorts: [1] }),
      await hashOf(write, {}, { envHash: 'x' }),
      await hashOf(write, {}, { targetsOf: async (writes) => ({ [writes[0] ?? '']: 'digest' }) }),
    ]
    expect(new Set([same, ...others]).size).toBe(6)
  })

  test('names what is written, once each', async () => {
    const twice = tool('twice', { touches: (): Touch[] => ['a', './a', 'b'].map((path) => ({ kind: 'path', path, access: 'write' })) })
    expect((await gateOf({}, { tools: [twice] }).judge(callOf('twice'))).writes).toEqual(['/home/u/ws/a', '/home/u/ws/b'])
    expect((await gateOf().judge(callOf('file_read', { path: 'a' }))).writes).toEqual([])
  })

  test('the oldest are forgotten, not the newest', async () => {
    const gate = gateOf()
    const hashes: string[] = []
    for (let n = 0; n < 1005; n++) hashes.push((await gate.judge(callOf('time', { n }))).plan)
    expect(hashes.map((hash) => gate.plan(hash) !== undefined)).toEqual(hashes.map((_, n) => n >= 5))
  })
})

describe('always', () => {
  test('covers the executable and sub-command it was given for, and nothing blocked or riskier', async () => {
    const asked: string[] = []
    const always = (key: string) => {
      asked.push(key)
      return key === '["/usr/bin/git","log"]'
    }
    expect(await said('shell', { command: 'git log' }, {}, { always })).toBe('allow medium autonomy.always')
    expect(await said('shell', { command: 'git status' }, {}, { always })).toBe('ask medium autonomy.medium_asks')
    expect(await said('shell', { command: 'git log; rm x' }, {}, { always })).toStartWith('deny high ')
    expect(await said('file_write', { path: 'a' }, {}, { always: () => true })).toBe('ask medium autonomy.medium_asks')
    expect(asked).toEqual(['["/usr/bin/git","log"]', '["/usr/bin/git","status"]'])
  })
})

describe('a plan holds without being judged again', () => {
  const read = callOf('file_read', { path: 'a' })
  const held = async (call: Call, fields: Partial<Policy> = {}, options: Partial<GateOptions> = {}) => {
    const gate = gateOf(fields, options)
    return gate.holds(call, (await gate.judge(call)).plan)
  }

  test('when it only reads what the policy names, or touches nothing', async () => {
    expect(await held(read)).toBe(true)
    expect(await held(callOf('time'))).toBe(true)
  })

  test.each<[string, Call]>([
    ['a write', callOf('file_write', { path: 'a' })],
    ['a write beside a read', callOf('copy', { from: 'a', to: 'b' })],
    ['a command', callOf('shell', { command: 'ls' })],
    ['an address', callOf('http', { url: 'https://example.com/' })],
    ['a refused call', callOf('file_read', { path: '/etc/passwd' })],
    ['arguments that are no JSON', { ...read, malformed: '{' }],
  ])('not for %s', async (_, call) => expect(await held(call, { autonomy: 'full' })).toBe(false))

  test('not when a stop is set meanwhile, nor when asking for it fails', async () => {
    let stop: string | undefined
    const stopped = gateOf({}, { estop: () => stop })
    const { plan } = await stopped.judge(read)
    expect(stopped.holds(read, plan)).toBe(true)
    stop = 'pulled'
    expect(stopped.holds(read, plan)).toBe(false)

    let broken = false
    const failing = gateOf(
      {},
      {
        estop: () => {
          if (broken) throw new Error('EIO')
          return undefined
        },
      },
    )
    const judged = await failing.judge(read)
    broken = true
    expect(failing.holds(read, judged.plan)).toBe(false)
  })

  test('not for another call under its hash, another gate, or an input that somebody wrote into', async () => {
    const gate = gateOf()
    const { plan } = await gate.judge(read)
    expect(gate.holds({ ...read, name: 'time' }, plan)).toBe(false)
    expect(gate.holds(callOf('file_read', { path: 'b' }), plan)).toBe(false)
    expect(gate.holds(read, 'forged')).toBe(false)
    expect(gate.holds({ ...read, malformed: '{' }, plan)).toBe(false)
    expect(gateOf().holds(read, plan)).toBe(false)

    const input = { path: 'a' }
    const changing = callOf('file_read', input)
    const judged = await gate.judge(changing)
    input.path = '/etc/passwd'
    expect(gate.holds(changing, judged.plan)).toBe(false)
  })

  test('only where judging again would give the same', async () => {
    const gate = gateOf({ autonomy: 'full' })
    const calls = ['time', 'file_read', 'file_write', 'plugin', 'nuke', 'http', 'shell'].map((name) =>
      callOf(name, { path: 'a', command: 'ls', url: 'https://example.com/' }),
    )
    let certain = 0
    for (const call of calls) {
      const first = await gate.judge(call)
      if (!gate.holds(call, first.plan)) continue
      certain += 1
      expect(await gate.judge(call)).toEqual(first)
    }
    expect(certain).toBeGreaterThan(2)
  })
})

describe('how a command would run', () => {
  const shell = tool('shell', {
    touches: ({ command, network, direct }) => [
      {
        kind: 'command',
        command: String(command),
        ...(Array.isArray(network) ? { network: network.map(String) } : {}),
        ...(direct === true ? { direct } : {}),
      },
    ],
  })
  const viewed = { confined: true, transaction: true }
  const planned = async (input: JsonObject, fields: Partial<Policy> = {}, commands: GateOptions['commands'] = viewed) => {
    const gate = gateOf(fields, { tools: [shell], commands })
    const judgement = await gate.judge(callOf('shell', input))
    const { readOnly, view, network } = gate.plan(judgement.plan)?.commands[0] ?? {}
    return { rule: judgement.rule, summary: judgement.summary, readOnly, view, network }
  }

  test('is part of the plan: a private view, or read-only where the command only reads', async () => {
    expect(await planned({ command: 'touch a' })).toMatchObject({ rule: 'autonomy.transaction', view: 'private', readOnly: undefined })
    expect(await planned({ command: 'cat a' })).toMatchObject({ rule: 'autonomy.low', view: undefined, readOnly: true })
    expect(await planned({ command: 'cat a > b' })).toMatchObject({ rule: 'autonomy.transaction', view: 'private', readOnly: undefined })
    const boxed = { confined: true, transaction: false }
    expect(await planned({ command: 'touch a' }, {}, boxed)).toMatchObject({ rule: 'autonomy.medium_asks', view: undefined })
    expect(await planned({ command: 'cat a' }, {}, { confined: false, transaction: false })).toMatchObject({ rule: 'autonomy.medium_asks' })
  })

  test('may be asked of a function, each time anew', async () => {
    let transaction = true
    const gate = gateOf({}, { tools: [shell], commands: async () => ({ confined: true, transaction }) })
    const call = callOf('shell', { command: 'touch a' })
    const first = await gate.judge(call)
    transaction = false
    const second = await gate.judge(call)
    expect([first.verdict, second.verdict, first.plan === second.plan]).toEqual(['allow', 'ask', false])
  })

  test('directly only if the call says so, and the question says it', async () => {
    const { rule, view, summary } = await planned({ command: 'ls', direct: true })
    expect([rule, view]).toEqual(['autonomy.direct_asks', 'direct'])
    expect(summary).toEndWith(' [direct: works on the workspace itself]')
    const touched = await planned({ command: 'touch a', direct: true }, { autonomy: 'full' })
    expect([touched.rule, touched.view]).toEqual(['autonomy.direct_asks', 'direct'])
  })

  test('with the hosts that it names or is known to need, and no other; the question names them after any cut', async () => {
    const { rule, network, summary } = await planned({ command: `curl https://b.org/x https://example.com/ -H '${'x'.repeat(900)}'` })
    expect([rule, network]).toEqual(['autonomy.network_asks', ['b.org', 'example.com']])
    expect(summary).toEndWith(' [network: b.org, example.com]')
    expect(await planned({ command: 'pip install x' })).toMatchObject({ network: ['files.pythonhosted.org', 'pypi.org'] })
    expect(await planned({ command: 'node x.js' })).toMatchObject({ rule: 'autonomy.transaction', network: undefined })
  })

  test('with the hosts that the call asks for, lists among them, if they are public', async () => {
    expect(await planned({ command: 'node x.js', network: ['@npm', 'a.org'] })).toMatchObject({
      rule: 'autonomy.network_asks',
      network: ['a.org', 'registry.npmjs.org'],
    })
    expect(await planned({ command: 'cat x', network: ['a.org'] })).toMatchObject({ rule: 'autonomy.network_asks' })
    expect(await planned({ command: 'node x.js', network: ['localhost'] })).toMatchObject({ rule: 'url.local_name' })
    expect(await planned({ command: 'node x.js', network: ['169.254.169.254'] }, { autonomy: 'full' })).toMatchObject({
      rule: 'url.private_address',
    })
    expect(await planned({ command: 'node x.js', network: ['*.a.org'] })).toMatchObject({ rule: 'url.host_spelling' })
  })

  test('without network where its words name only this machine, and where no network can be given', async () => {
    expect(await planned({ command: 'curl http://localhost:3000/ http://127.0.0.1/' })).toMatchObject({
      rule: 'autonomy.transaction',
      network: undefined,
    })
    expect(await planned({ command: 'curl https://a.org' }, {}, { ...viewed, network: false })).toMatchObject({
      rule: 'autonomy.transaction',
    })
  })

  test('in full without a question only to hosts of allowed_domains, unless egress is open', async () => {
    const full = { autonomy: 'full' } as const
    expect((await planned({ command: 'curl https://example.com' }, full)).rule).toBe('autonomy.full')
    expect((await planned({ command: 'curl https://example.com https://a.org' }, full)).rule).toBe('autonomy.network_asks')
    expect((await planned({ command: 'curl https://a.org' }, { ...full, egress: 'open' })).rule).toBe('autonomy.full')
  })

  test('bound to the files it would run, where it works on the workspace itself, and only there', async () => {
    const asked: string[][] = []
    const digest = { value: 'a' }
    const hashOf = async (input: JsonObject, commands: GateOptions['commands']) => {
      const runsOf = async (runs: readonly string[]) => {
        asked.push([...runs])
        return { [`runs ${runs[0]}`]: digest.value }
      }
      return (await gateOf({}, { tools: [shell], commands, runsOf }).judge(callOf('shell', input))).plan
    }
    const boxed = { confined: true, transaction: false }
    await hashOf({ command: 'bash x.sh' }, viewed)
    expect(asked).toEqual([])
    const first = await hashOf({ command: 'cd sub && bash x.sh && ./y && python3 z.py && . ./e' }, boxed)
    expect(asked).toEqual([['x.sh', 'y', 'z.py', 'e'].map((name) => `/home/u/ws/sub/${name}`)])
    digest.value = 'b'
    expect(await hashOf({ command: 'cd sub && bash x.sh && ./y && python3 z.py && . ./e' }, boxed)).not.toBe(first)
    await hashOf({ command: 'bash x.sh', direct: true }, viewed)
    expect(asked.at(-1)).toEqual(['/home/u/ws/x.sh'])
  })
})
