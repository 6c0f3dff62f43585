import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { canonical } from '../kit/json.ts'
import { idMaker, readArguments } from './arguments.ts'

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

test('half a surrogate pair in a key or a value is replaced, so that the input can be hashed', () => {
  const { input } = readArguments(String.raw`{"\ud800k":"v\udc00","list":["\ud83d"]}`)
  expect(input).toEqual({ '\ufffdk': 'v\ufffd', list: ['\ufffd'] })
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
      if (malformed !== undefined) expect(malformed).toBe(raw.toWellFormed())
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
