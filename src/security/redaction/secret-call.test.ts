import { describe, expect, test } from 'bun:test'
import type { Call } from '../../runtime/event.ts'
import { gateOf, tool } from '../gate.fixture.ts'
import { lookForSecrets } from '../precheck.ts'
import { createRedactor } from './redact.ts'

const key = 'sk-0123456789abcdef'
const redactor = createRedactor()
redactor.register(key, 'SOME_KEY')
redactor.register('pass-phrase-42!', 'SOME_PASSWORD')
redactor.register('nameless-secret-1')

const call = (input: Call['input'], more: Partial<Call> = {}): Call => ({ id: 'c', name: 'plugin', input, ...more })
const look = (asked: Call, risk: 'low' | 'medium' = 'medium') => lookForSecrets(asked, tool('plugin', { risk }), redactor)

describe('which secrets a value holds', () => {
  test('by name, wherever and however they stand in it', () => {
    expect(redactor.inspect({ a: [`x ${key}`], 'pass-phrase-42!': 1 })).toEqual({
      held: ['the value of SOME_KEY', 'the value of SOME_PASSWORD'],
      standIns: [],
    })
    expect(redactor.inspect(Buffer.from(`ab${key}`).toString('base64')).held).toEqual(['the value of SOME_KEY'])
    expect(redactor.inspect('nameless-secret-1').held).toEqual(['the value of a secret'])
    expect(redactor.inspect({ a: 'nothing', b: '[redacted:OTHER]', c: '[redacted]' })).toEqual({ held: [], standIns: [] })
    expect(redactor.inspect(['[redacted:SOME_KEY]'])).toEqual({ held: [], standIns: ['SOME_KEY'] })
    expect(createRedactor().inspect(key)).toEqual({ held: [], standIns: [] })
  })

  test('also of what goes in circles', () => {
    const circle: { key: string; self?: unknown } = { key }
    circle.self = circle
    expect(redactor.inspect(circle).held).toEqual(['the value of SOME_KEY'])
  })
})

describe('a call', () => {
  test('that holds one is hidden before anything quotes it', () => {
    for (const asked of [call({ a: key }), call({ [key]: 1 }), call({}, { name: key }), call({}, { malformed: `{"a": "${key}` })]) {
      const { call: shown, hidden } = look(asked, 'low')
      expect(hidden?.rule).toBe('redaction.secret')
      expect(hidden?.reason).toContain('the value of SOME_KEY')
      expect(JSON.stringify([shown, hidden])).not.toContain(key)
    }
  })

  test('that holds a label is refused to what does more than look', () => {
    const asked = call({ a: 'x [redacted:SOME_KEY]' })
    expect(look(asked).hidden).toMatchObject({ rule: 'redaction.label', reason: expect.stringContaining('[redacted:SOME_KEY] stands for') })
    expect(look(asked, 'low')).toEqual({ call: asked })
  })

  test('that holds neither is the very call', () => {
    const asked = call({ a: 'text' })
    expect(look(asked).call).toBe(asked)
    expect(lookForSecrets(asked, undefined, undefined)).toEqual({ call: asked })
  })
})

test.each(['time', 'file_read', 'file_write', 'shell', 'http', 'plugin'])(
  'the gate refuses it to %s at every level, and says nothing of it',
  async (name) => {
    for (const autonomy of ['readonly', 'supervised', 'full'] as const) {
      const { judge } = gateOf({ autonomy }, { secrets: redactor })
      const input = { path: `${key}.txt`, command: `echo ${key}`, url: `https://example.com/?k=${key}` }
      const judgement = await judge({ id: 'c', name, input })
      expect(judgement).toMatchObject({ verdict: 'deny', rule: 'redaction.secret' })
      expect(JSON.stringify(judgement)).not.toContain(key)
    }
  },
)

test('what is wrong with it otherwise is said first, and without it', async () => {
  const { judge } = gateOf({}, { secrets: redactor })
  for (const [asked, rule] of [
    [call({}, { name: `tool_${key}` }), 'tool.unknown'],
    [call({}, { malformed: `{"a": "${key}` }), 'schema.malformed'],
  ] as const) {
    const judgement = await judge(asked)
    expect(judgement.rule).toBe(rule)
    expect(JSON.stringify(judgement)).not.toContain(key)
  }
})
