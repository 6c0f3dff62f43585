import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { JsonObject } from '../kit/json.ts'
import { callOf, gateOf, said, tool, tools } from './gate.fixture.ts'

describe('refused before the arguments count', () => {
  test('by the emergency stop, first of all, whatever the tool', async () => {
    const stopped = { estop: () => 'pulled \u001b[31mby ann' }
    expect(await said('time', {}, { autonomy: 'full' }, stopped)).toBe('deny low estop')
    expect(await said('nonsense', {}, {}, stopped)).toBe('deny high estop')
    expect((await gateOf({}, stopped).judge(callOf('time'))).reason).toContain('pulled \\u{1b}[31mby ann')
    expect(await said('time', {}, {}, { estop: () => '' })).toBe('deny low estop')
  })

  test('when asking for the stop itself fails', async () => {
    const estop = () => {
      throw new Error('EIO')
    }
    expect(await said('time', {}, {}, { estop })).toBe('deny high gate.error')
  })

  test('for a tool that does not exist, with the nearest that does', async () => {
    const judged = await gateOf().judge(callOf('file_raed'))
    expect(judged).toMatchObject({ verdict: 'deny', rule: 'tool.unknown' })
    expect(judged.reason).toStartWith('unknown tool "file_raed"; did you mean "file_read"?; tools: time, file_read, file_write, ')
    expect((await gateOf({}, { tools: [] }).judge(callOf('x'))).reason).toEndWith('; tools: none')
    expect(await said('constructor')).toBe('deny high tool.unknown')
    expect(await said('__proto__')).toBe('deny high tool.unknown')
  })

  test('for a call that names no tool, with what came in its place', async () => {
    const { judge } = gateOf({ autonomy: 'full' }, { tools: [tool('time')] })
    expect(await judge(callOf(''))).toMatchObject({
      verdict: 'deny',
      rule: 'schema.malformed',
      reason: 'the call names no tool; tools: time',
    })
    const { rule, reason } = await judge({ ...callOf(''), malformed: '"file_list"' })
    expect([rule, reason]).toEqual(['schema.malformed', expect.stringContaining('cannot be read: "\\"file_list\\""')])
    expect(await said(' time ')).toBe('deny high tool.unknown')
  })

  test('for a tool that this channel does not have, also in full autonomy', async () => {
    expect(await said('time', {}, { toolsAllow: ['file_read'], autonomy: 'full' })).toBe('deny low tool.not_allowed')
    expect(await said('time', {}, { toolsAllow: [] })).toBe('deny low tool.not_allowed')
    expect(await said('time', {}, { toolsAllow: ['time'] })).toBe('allow low autonomy.low')
  })

  test('for arguments that are no object, do not fit, or have no canonical form', async () => {
    const { judge } = gateOf({ autonomy: 'full' })
    expect(await judge({ ...callOf('time'), malformed: '{"a":' })).toMatchObject({ verdict: 'deny', rule: 'schema.malformed' })
    expect(await judge(callOf('file_read', { pth: 'x' }))).toMatchObject({
      verdict: 'deny',
      rule: 'schema.invalid',
      reason: expect.stringContaining('"path" is missing'),
    })
    expect(await judge(callOf('time', { a: '\ud800' }))).toMatchObject({ verdict: 'deny', rule: 'schema.malformed' })
    const text = { path: 'ok', edits: [{ text: '\\ud800' }, { text: 'b\udc00' }] }
    for (const call of [callOf('file_write', text), { ...callOf('file_write'), malformed: JSON.stringify(text) }]) {
      const { rule, reason } = await judge(call)
      expect([rule, reason]).toEqual(['schema.malformed', expect.stringContaining('"edits" holds half a character')])
      expect(reason).toContain('\\udc00')
    }
    expect(await judge(callOf('time', JSON.parse('[1]')))).toMatchObject({ verdict: 'deny', rule: 'schema.malformed' })
    expect(await judge(callOf('time', JSON.parse('null')))).toMatchObject({ verdict: 'deny', rule: 'schema.malformed' })
  })

  test('for arguments nested without bottom, instead of falling over', async () => {
    let deep: JsonObject = {}
    for (let level = 0; level < 50_000; level++) deep = { a: deep }
    expect(await gateOf().judge(callOf('time', deep))).toMatchObject({ verdict: 'deny', rule: 'schema.malformed' })
  })
})

describe('refused by what is touched, at every level of autonomy', () => {
  test.each(['readonly', 'supervised', 'full'] as const)('%s', async (autonomy) => {
    const level = { autonomy, approveAllMedium: true }
    expect(await said('file_read', { path: '/etc/passwd' }, level)).toBe('deny high path.outside_workspace')
    expect(await said('file_read', { path: 'vault/x' }, level)).toBe('deny high path.forbidden')
    expect(await said('file_write', { path: '.git/hooks/pre-commit' }, level)).toBe('deny high path.protected')
    expect(await said('http', { url: 'http://169.254.169.254/' }, level)).toBe('deny high url.private_address')
    expect(await said('shell', { command: 'pwd', cwd: '/etc' }, level)).toBe('deny high path.outside_workspace')
    expect(await said('shell', { command: 'rm -rf /' }, level)).toStartWith('deny high command.')
    expect(await said('shell', { command: 'cat /etc/shadow' }, level)).toStartWith('deny high ')
    expect(await said('copy', { from: 'a', to: '../b' }, level)).toBe('deny high path.outside_workspace')
  })

  test('a tool that breaks while saying what it touches, or says nonsense, is denied', async () => {
    const odd: unknown[] = [
      undefined,
      5,
      [{}],
      [{ kind: 'soul' }],
      [{ kind: 'path', access: 'read' }],
      [{ kind: 'path', path: 'a', access: 'run' }],
      [{ kind: 'url', url: 1, method: 'GET' }],
      [null],
    ]
    for (const touches of odd) {
      const broken = JSON.parse(JSON.stringify({ touches: touches ?? null })).touches
      expect(await said('odd', {}, { autonomy: 'full' }, { tools: [tool('odd', { touches: () => broken })] })).toBe('deny high gate.error')
    }
    const judged = await gateOf().judge(callOf('thrower'))
    expect(judged).toMatchObject({ verdict: 'deny', rule: 'gate.error', reason: expect.stringContaining('boom \\u{1b}[2J') })
  })

  test('a refused call leaves no plan to execute, but a hash for its receipt', async () => {
    const gate = gateOf()
    const judged = await gate.judge(callOf('file_read', { path: '/etc/passwd' }))
    expect(judged.plan).toHaveLength(64)
    expect(gate.plan(judged.plan)).toBeUndefined()
    const high = await gate.judge(callOf('nuke'))
    expect(high.verdict).toBe('deny')
    expect(gate.plan(high.plan)).toBeUndefined()
  })
})

describe('seed risks and levels', () => {
  const cases: [string, JsonObject, string, string, string][] = [
    ['time', {}, 'allow low autonomy.low', 'allow low autonomy.low', 'allow low autonomy.low'],
    ['file_read', { path: 'a' }, 'allow low autonomy.low', 'allow low autonomy.low', 'allow low autonomy.low'],
    ['file_write', { path: 'a' }, 'deny medium autonomy.readonly', 'ask medium autonomy.medium_asks', 'allow medium autonomy.full'],
    ['http', { url: 'https://example.com/' }, 'allow low autonomy.low', 'allow low autonomy.low', 'allow low autonomy.low'],
    [
      'http',
      { url: 'https://other.org/' },
      'deny medium autonomy.readonly',
      'ask medium autonomy.network_asks',
      'ask medium autonomy.network_asks',
    ],
    [
      'http',
      { url: 'https://other.org/', method: 'POST' },
      'deny high autonomy.readonly',
      'ask high autonomy.network_asks',
      'ask high autonomy.network_asks',
    ],
    ['shell', { command: 'pwd' }, 'allow low autonomy.low', 'allow low autonomy.low', 'allow low autonomy.low'],
    ['shell', { command: 'touch a' }, 'deny medium autonomy.readonly', 'ask medium autonomy.medium_asks', 'allow medium autonomy.full'],
    ['shell', { command: 'python3 x.py' }, 'deny high autonomy.readonly', 'deny high autonomy.high_blocked', 'allow high autonomy.full'],
    ['plugin', {}, 'deny medium autonomy.readonly', 'ask medium autonomy.medium_asks', 'allow medium autonomy.full'],
    ['nuke', {}, 'deny high autonomy.readonly', 'deny high autonomy.high_blocked', 'allow high autonomy.full'],
  ]
  test.each(cases)('%s %j', async (name, input, readonly, supervised, full) => {
    expect(await said(name, input, { autonomy: 'readonly' })).toBe(readonly)
    expect(await said(name, input)).toBe(supervised)
    expect(await said(name, input, { autonomy: 'full' })).toBe(full)
  })

  test('with workspace_only off, what a command writes outside is high risk and never "always"', async () => {
    const outside = { workspaceOnly: false }
    expect(await said('shell', { command: 'touch /srv/a' }, outside, { always: () => true })).toBe('deny high autonomy.high_blocked')
    expect(await said('shell', { command: 'touch a' }, outside, { always: () => true })).toBe('allow medium autonomy.always')
    expect(await said('file_read', { path: '/srv/a' }, outside)).toBe('ask medium autonomy.medium_asks')
    expect(await said('file_write', { path: '/srv/a' }, outside)).toBe('deny high autonomy.high_blocked')
  })

  test('medium approved in advance runs, high stays blocked', async () => {
    expect(await said('file_write', { path: 'a.md' }, { approveAllMedium: true })).toBe('allow medium autonomy.approve_all_medium')
    expect(await said('nuke', {}, { approveAllMedium: true })).toBe('deny high autonomy.high_blocked')
  })

  test('one harmless command does not carry another one through readonly', async () => {
    const two = (commands: string[]) => [tool('two', { touches: () => commands.map((command) => ({ kind: 'command', command })) })]
    expect(await said('two', {}, { autonomy: 'readonly' }, { tools: two(['pwd', 'touch a']) })).toBe('deny medium autonomy.readonly')
    expect(await said('two', {}, { autonomy: 'readonly' }, { tools: two(['pwd', 'pwd']) })).toBe('allow low autonomy.low')
    expect(await said('two', {}, {}, { tools: two(['ls', 'ls']), always: () => true })).toBe('ask medium autonomy.medium_asks')
  })

  test('the declared risk is a floor that harmless touches do not lower', async () => {
    const sly = tool('sly', { risk: 'high', touches: () => [{ kind: 'path', path: 'a', access: 'read' }] })
    expect(await said('sly', {}, {}, { tools: [sly] })).toBe('deny high autonomy.high_blocked')
  })
})

test('two tools of one name are a wiring mistake', () => {
  expect(() => gateOf({}, { tools: [tool('a'), tool('a')] })).toThrow('share a name')
})

test('whatever a model sends, the gate answers, and allows no path outside the workspace', async () => {
  const names = fc.oneof(fc.constantFrom(...tools.map((one) => one.name)), fc.string())
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 20 }),
    fc.constantFrom('/etc/passwd', '../x', 'a', '~', 'http://127.0.0.1', 'https://example.com', 'rm -rf /', 'ls', 'cat $(x)'),
  )
  const input = fc.dictionary(fc.constantFrom('path', 'command', 'url', 'from', 'to', 'cwd', 'x'), fc.oneof(text, fc.integer()), {
    maxKeys: 3,
  })
  await fc.assert(
    fc.asyncProperty(names, input, async (name, args) => {
      const gate = gateOf({ autonomy: 'full' })
      const judged = await gate.judge(callOf(name, args))
      expect(judged.plan).toMatch(/^[\da-f]{64}$/)
      expect(judged.summary).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
      if (judged.verdict !== 'deny') for (const { path } of gate.plan(judged.plan)?.paths ?? []) expect(path).toStartWith('/home/u/ws')
    }),
    { numRuns: 200 },
  )
})
