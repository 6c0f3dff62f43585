import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { processorMs } from '../../../test/support/processor-ms.ts'
import { canonical, type Json, type JsonObject } from '../../kit/json.ts'
import type { ToolSpec } from '../../runtime/port.ts'
import { idMaker, portableName, readArguments } from './call-arguments.ts'
import { fitCalls } from './fit-calls.ts'

test('arguments that would break what comes after are malformed: too deep, infinite, no object', () => {
  for (const raw of [
    `{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}`,
    '{"a":1e999}',
    '"text"',
    '[]',
    '12',
    'true',
    '{',
    '{"a":1}{',
    'None',
  ]) {
    expect(readArguments(raw)).toEqual({ input: {}, malformed: raw })
  }
})

test('half a surrogate pair in a key or a value is never replaced by another character: the call is malformed and shows it', () => {
  for (const raw of [String.raw`{"path":"a\ud800"}`, String.raw`{"\udc00k":1}`, String.raw`{"list":[{"a":"\ud83d"}]}`])
    expect(readArguments(raw)).toEqual({ input: {}, malformed: raw })
  expect(readArguments('{"path":"a\ud800"}')).toEqual({ input: {}, malformed: String.raw`{"path":"a\ud800"}` })
  expect(readArguments(String.raw`{"path":"\ud83d\ude42"}`)).toEqual({ input: { path: '🙂' } })
})

test('a key named __proto__ is an ordinary key', () => {
  const { input } = readArguments('{"__proto__":{"admin":true}}')
  expect(Object.keys(input)).toEqual(['__proto__'])
  expect(Object.getPrototypeOf(input)).toBe(Object.prototype)
})

test('whatever a model writes, the input is an object that can be hashed, and nothing it wrote is lost', () => {
  const texts = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.json(),
    fc.object().map((value) => JSON.stringify(value) ?? ''),
  )
  fc.assert(
    fc.property(texts, (raw) => {
      const { input, malformed } = readArguments(raw)
      expect(canonical(input)).toStartWith('{')
      if (malformed !== undefined) expect(malformed).toBe(raw.isWellFormed() ? raw : malformed.toWellFormed())
      else expect(raw.trim() === '' || raw.trim() === 'null' || raw.trim().startsWith('{')).toBe(true)
    }),
  )
})

test('ids are unique within a conversation and fit every vendor', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.string(), fc.constantFrom('a', 'b', 'call_1', 'x'.repeat(200))), { maxLength: 12 }), (wanted) => {
      const newId = idMaker([{ role: 'tool', callId: 'call_1', name: 't', content: '', isError: false }])
      const ids = wanted.map(newId)
      expect(new Set([...ids, 'call_1']).size).toBe(ids.length + 1)
      for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
    }),
  )
})

test('an id that is free and sound stays as it is', () => {
  expect(idMaker([])('toolu_01A-b')).toBe('toolu_01A-b')
  expect(idMaker([])('x'.repeat(56))).toBe('x'.repeat(56))
})

test('of another only what fits is kept', () => {
  expect(['x'.repeat(57), 'a.b', 'ä', ''].map((id) => idMaker([])(id))).toEqual(['x'.repeat(56), 'a_b', '_', 'call'])
})

test('ten thousand calls of one id have their ids at once', () => {
  const newId = idMaker([])
  const begun = processorMs()
  expect(new Set(Array.from({ length: 10_000 }, () => newId('a'))).size).toBe(10_000)
  expect(processorMs() - begun).toBeLessThan(1_000)
})

test('a name goes back as every vendor takes it', () => {
  const names = ['file_list', ' file_list ', '', 'a.b', '\u{1f642}', 'x'.repeat(65)]
  expect(names.map(portableName)).toEqual(['file_list', '_file_list_', 'unnamed', 'a_b', '__', 'x'.repeat(64)])
})

const spec = (properties: JsonObject, required: readonly string[] = []): ToolSpec => ({
  name: 't',
  description: '',
  parameters: { type: 'object', properties, required },
})
const fitted = (input: JsonObject, properties: JsonObject, required: readonly string[] = []) => {
  const [part] = fitCalls([{ type: 'call', id: 'c', name: 't', input }], [spec(properties, required)])
  return part?.type === 'call' ? part : undefined
}

test.each<[Json, JsonObject, Json]>([
  ['5', { type: 'integer' }, 5],
  [' -5.5 ', { type: 'number' }, -5.5],
  ['True', { type: 'boolean' }, true],
  ['[1,"2"]', { type: 'array', items: { type: 'integer' } }, [1, 2]],
  ['{"n":"1"}', { type: 'object', properties: { n: { type: 'integer' } } }, { n: 1 }],
  [[{ n: '1' }], { type: 'array', items: { type: 'object', properties: { n: { type: 'integer' } } } }, [{ n: 1 }]],
])('%j becomes what %j allows alone, and the metadata keeps what was sent', (value, schema, result) => {
  expect(fitted({ a: value }, { a: schema })).toMatchObject({ input: { a: result }, meta: { sent: JSON.stringify({ a: value }) } })
})

test.each<[Json, JsonObject]>([
  ['5', { type: 'string' }],
  ['5', { type: ['string', 'integer'] }],
  ['5', {}],
  ['5', { anyOf: [{ type: 'integer' }] }],
  ['5.5', { type: 'integer' }],
  ['5 apples', { type: 'integer' }],
  ['12345678901234567890', { type: 'integer' }],
  ['yes', { type: 'boolean' }],
  ['null', { type: 'integer' }],
  [null, { type: ['integer', 'null'] }],
  [5, { type: 'string' }],
  [String.raw`["\ud800"]`, { type: 'array' }],
])('%j stays as it is where %j is asked for', (value, schema) => {
  expect(fitted({ a: value }, { a: schema })).toEqual({ type: 'call', id: 'c', name: 't', input: { a: value } })
})

test('null is left out only where the member may be absent', () => {
  expect(fitted({ a: null, b: 1 }, { a: { type: 'integer' } })?.input).toEqual({ b: 1 })
  expect(fitted({ a: null }, { a: { type: 'integer' } }, ['a'])?.input).toEqual({ a: null })
  expect(fitted({ z: null }, { a: { type: 'integer' } })?.input).toEqual({ z: null })
})

test.each([
  ['JSON in a JSON string', JSON.stringify('{"a":"b"}'), { a: 'b' }],
  ['raw line ends and tabs in a string', '{"a":\n"b\n\tc \\"d\\""}', { a: 'b\n\tc "d"' }],
  ['both', JSON.stringify('{"a":"b\nc"}'), { a: 'b\nc' }],
  ['an empty object before', ' {}\n{"a":"{}{"}', { a: '{}{' }],
])('%s is read, and kept as it was sent', (_, raw, input) => {
  expect(readArguments(raw)).toEqual({ input, sent: raw })
})

test('a backslash before a raw line end is not repaired', () => {
  const raw = '{"a":"b\\\nc"}'
  expect(readArguments(raw)).toEqual({ input: {}, malformed: raw })
})
