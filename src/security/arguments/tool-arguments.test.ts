import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { fromJSONSchema } from 'zod'
import type { Json, JsonObject } from '../../kit/json.ts'
import type { Schema } from '../../runtime/port.ts'
import { fits } from './fits.ts'
import { createValidator } from './tool-arguments.ts'

const fileRead: Schema = {
  type: 'object',
  properties: {
    path: { type: 'string', minLength: 1 },
    offset: { type: 'integer', minimum: 1 },
    mode: { type: 'string', enum: ['text', 'lines'] },
    tags: { type: 'array', items: { type: 'string' }, maxItems: 2 },
    code: { type: 'string', pattern: '^a+$' },
    mail: { type: 'string', format: 'email' },
    part: { type: 'object', properties: { n: { type: 'number', maximum: 3 } }, required: ['n'] },
  },
  required: ['path'],
  additionalProperties: false,
}

async function complaint(schema: Schema, input: JsonObject): Promise<string> {
  const result = await createValidator()(schema, input)
  return result.ok ? 'ok' : result.message
}

describe('misfits are named so that a model can mend them', () => {
  test.each<[JsonObject, string]>([
    [{}, '"path" is missing (of type string)'],
    [
      { pth: 'a' },
      '"path" is missing (of type string); unknown key "pth"; did you mean "path"?; known keys: path, offset, mode, tags, code, mail, part',
    ],
    [{ path: 5 }, '"path" must be of type string, got 5'],
    [{ path: '' }, '"path" must be at least 1 characters, got ""'],
    [{ path: 'a', offset: 1.5 }, '"offset" must be an integer, got 1.5'],
    [{ path: 'a', offset: '3' }, '"offset" must be of type number, got "3"'],
    [{ path: 'a', offset: 0 }, '"offset" must be at least 1, got 0'],
    [{ path: 'a', mode: 'txt' }, '"mode" must be one of "text", "lines", got "txt"'],
    [{ path: 'a', tags: ['a', 1] }, '"tags.1" must be of type string, got 1'],
    [{ path: 'a', tags: ['a', 'b', 'c'] }, '"tags" must be at most 2 items, got ["a","b","c"]'],
    [{ path: 'a', code: 'b' }, '"code" must be text that matches /^a+$/, got "b"'],
    [{ path: 'a', mail: 'b' }, '"mail" must be a valid email, got "b"'],
    [{ path: 'a', part: {} }, '"part.n" is missing (of type number)'],
    [{ path: 'a', part: { n: 4 } }, '"part.n" must be at most 3, got 4'],
    [{ path: null }, '"path" must be of type string, got null'],
    [{ path: { x: '\u001b[2J' } }, '"path" must be of type string, got {"x":"\\u001b[2J"}'],
    [{ path: 'a', toString: 'x' }, 'unknown key "toString"; known keys: path, offset, mode, tags, code, mail, part'],
    [JSON.parse('{"path":"a","__proto__":{"x":1}}'), 'unknown key "__proto__"; known keys: path, offset, mode, tags, code, mail, part'],
  ])('%j', async (input, message) => expect(await complaint(fileRead, input)).toBe(message))

  test('a hundred misfits are told as eight and a count', async () => {
    const input = { path: 'a', tags: Array.from({ length: 100 }, () => 1) }
    const schema: Schema = { type: 'object', properties: { path: { type: 'string' }, tags: { type: 'array', items: { type: 'string' } } } }
    expect(await complaint(schema, input)).toEndWith('; and 92 more')
  })

  test('a huge value is cut in the message', async () => {
    expect((await complaint(fileRead, { path: ['x'.repeat(100_000)] })).length).toBeLessThan(300)
  })
})

test('a schema that zod cannot express lets nothing through and says so', async () => {
  for (const extra of [{ not: { required: ['a'] } }, { $ref: 'http://x/y' }, { if: {} }])
    expect(await complaint({ type: 'object', ...extra }, {})).toContain("the tool's own schema cannot be checked")
  expect(await complaint({ type: 'object', properties: { a: { type: 'string', pattern: '(' } } }, { a: 'x' })).toContain(
    'cannot be checked',
  )
})

test('unknown keys are refused only when the schema forbids them', async () => {
  expect(await complaint({ type: 'object', properties: {}, additionalProperties: false }, { any: 1 })).toContain('unknown key "any"')
  const open: Omit<Schema, 'type'>[] = [{}, { properties: {} }, { properties: { a: { type: 'string', pattern: 'a' } } }]
  for (const schema of open) expect(await complaint({ type: 'object', ...schema }, { any: 1 })).toBe('ok')
})

test('the very object given comes back: no defaults, nothing dropped, nothing coerced', async () => {
  const schema: Schema = { type: 'object', properties: { n: { type: 'integer', default: 3 }, p: { type: 'string', pattern: '^a' } } }
  const input = { p: 'ab' }
  const result = await createValidator()(schema, input)
  expect(result).toEqual({ ok: true, input: { p: 'ab' } })
  expect(result.ok && result.input).toBe(input)
})

const leaf = fc.oneof(
  fc.record({ type: fc.constant('string'), minLength: fc.nat(3), maxLength: fc.nat(6) }, { requiredKeys: ['type'] }),
  fc.record(
    { type: fc.constantFrom('integer', 'number'), minimum: fc.integer({ min: -3, max: 3 }), maximum: fc.integer({ min: 0, max: 9 }) },
    { requiredKeys: ['type'] },
  ),
  fc.constant({ type: 'boolean' }),
  fc.constant({ type: 'string', enum: ['a', 'b'] }),
  fc.constant({ type: 'string', pattern: 'a' }),
  fc.constant({ type: ['string', 'null'] }),
  fc.constant({}),
)
const list = fc.record({ type: fc.constant('array'), items: leaf, minItems: fc.nat(1), maxItems: fc.nat(3) }, { requiredKeys: ['type'] })
const key = fc.oneof({ weight: 9, arbitrary: fc.constantFrom('a', 'b') }, { weight: 1, arbitrary: fc.constant('toString') })
// Excludes toString: the library reads inherited members of the input as if the caller had passed them.
const property = fc.constantFrom('a', 'b')
const members = fc.dictionary(property, fc.oneof(leaf, list), { maxKeys: 3 })
const anyObject = fc.record(
  { type: fc.constant('object'), properties: members, required: fc.subarray(['a', 'b']), additionalProperties: fc.boolean() },
  { requiredKeys: ['type'] },
)
const anySchema = fc.record(
  {
    type: fc.constant('object' as const),
    properties: fc.dictionary(property, fc.oneof(leaf, list, anyObject), { maxKeys: 3 }),
    required: fc.subarray(['a', 'b']),
    additionalProperties: fc.boolean(),
  },
  { requiredKeys: ['type'] },
)
const scalar = fc.oneof(
  fc.string({ maxLength: 7 }),
  fc.constantFrom('a', 'b'),
  fc.integer({ min: -5, max: 12 }),
  fc.double(),
  fc.boolean(),
  fc.constant(null),
)
const anyInput = fc.dictionary(key, fc.oneof(scalar, fc.array(scalar, { maxLength: 4 }), fc.dictionary(key, scalar, { maxKeys: 3 })), {
  maxKeys: 4,
})

test('the quick yes is never given where the full check would refuse', () => {
  let quick = 0
  fc.assert(
    fc.property(anySchema, anyInput, (schema, input) => {
      if (!fits(schema, input)) return
      quick++
      expect(fromJSONSchema(JSON.parse(JSON.stringify(schema))).safeParse(input).success).toBe(true)
    }),
    { numRuns: 6000 },
  )
  expect(quick).toBeGreaterThan(300)
})

test('a schema with odd parts never gets the quick yes', () => {
  const parts: unknown[] = [
    { type: 'strange' },
    { type: 'constructor' },
    { type: 'string', enum: [1, 'x'] },
    { type: 'string', enum: 'x' },
    { type: 'string', minLength: '1' },
    { type: 'string', maxLength: null },
    { type: 'string', const: 'x' },
    { type: 'string', description: 'fine', format: 'uri' },
    { type: ['string'] },
    {},
    true,
    null,
  ]
  for (const part of parts) expect([part, fits({ type: 'object', properties: { a: part } }, { a: 'x' })]).toEqual([part, false])
  const wholes = [
    { properties: [] },
    { properties: null },
    { required: 'a' },
    { required: [1] },
    { additionalProperties: {} },
    { minProperties: 1 },
    { $ref: '#/x' },
  ]
  for (const whole of wholes) expect([whole, fits({ type: 'object', ...whole }, {})]).toEqual([whole, false])
  expect(fits({ type: 'object', properties: { a: { type: 'number' } } }, { a: Number.NaN })).toBe(false)
  expect(fits({ type: 'object' }, [])).toBe(false)
})

test('ordinary arguments get the quick yes', () => {
  expect(fits(fileRead, { path: 'a', offset: 2, mode: 'text', tags: ['x'] })).toBe(true)
  expect(fits({ type: 'object', properties: {} }, {})).toBe(true)
})

describe('expressions of a schema', () => {
  const evil = '(a+)+$'
  const long = `${'a'.repeat(5_000)}!`
  const text = { type: 'string', pattern: evil }

  test.each<[string, object, JsonObject]>([
    ['pattern', { properties: { a: text } }, { a: long }],
    ['a list of patterns, which the library takes for text', { properties: { a: { type: 'string', pattern: [evil] } } }, { a: long }],
    ['items', { properties: { a: { type: 'array', items: text } } }, { a: Array.from({ length: 20 }, (_, at) => `${long}${at}`) }],
    ['anyOf', { properties: { a: { anyOf: [{ type: 'number' }, text] } } }, { a: long }],
    ['$defs', { properties: { a: { $ref: '#/$defs/b' } }, $defs: { b: text } }, { a: long }],
    ['propertyNames', { propertyNames: { pattern: evil } }, { [long]: 1 }],
    ['patternProperties', { patternProperties: { [evil]: { type: 'string' } }, additionalProperties: false }, { [long]: 'x' }],
    ['a property that is called pattern', { properties: { pattern: text } }, { pattern: long }],
  ])('%s: they do not backtrack, and what does not match is refused', async (_, more, input) => {
    // One that backtracks does not end before the universe does.
    expect(await complaint({ type: 'object', ...more }, input)).not.toBe('ok')
    const matching = JSON.parse(JSON.stringify(input).replaceAll('!', 'a').replaceAll(/\d+"/g, 'a"').replaceAll(':1', ':"1"'))
    expect(await complaint({ type: 'object', ...more }, matching)).toBe('ok')
  })

  test('they mean what the language means, wherever they stand', async () => {
    const source = fc.constantFrom(
      'a',
      '^a',
      'b$',
      '^[ab]+$',
      '^(a|bb)*$',
      'a{2}',
      '^.$',
      '\\n',
      '\\bb',
      '^a?b{1,2}$',
      '^$',
      '^\\S+\\.[a-z]$',
    )
    const word = fc.string({ unit: fc.constantFrom('a', 'b', '.', '\n', '"', '\\', 'é'), maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(source, source, fc.dictionary(word, fc.oneof(word, fc.array(word))), async (one, two, input) => {
        const either: Json[] = [
          { type: 'string', pattern: one },
          { type: 'array', items: { type: 'string', pattern: two } },
        ]
        const schema: Schema = {
          type: 'object',
          properties: { a: { anyOf: either } },
          patternProperties: { [two]: { oneOf: [{ type: 'string', minLength: 1, pattern: one }, { type: 'array' }] } },
          additionalProperties: false,
        }
        const own = fromJSONSchema(JSON.parse(JSON.stringify(schema))).safeParse(input).success
        expect([schema, input, (await createValidator()(schema, input)).ok]).toEqual([schema, input, own])
      }),
      { numRuns: 400 },
    )
  })

  test('a text that is too long to be checked is refused, and one that no expression concerns is not', async () => {
    const schema = { type: 'object' as const, properties: { a: { type: 'string', pattern: '^a' }, b: { type: 'string' } } }
    expect(await complaint(schema, { a: 'a'.repeat(200_000) })).toContain('and have at most 100000 characters')
    expect(await complaint(schema, { a: 'a', b: 'a'.repeat(2_000_000) })).toBe('ok')
    const many = { type: 'object' as const, properties: { a: { type: 'array', items: { type: 'string', pattern: '(x{0,9}){0,50}y' } } } }
    const began = process.cpuUsage()
    expect(await complaint(many, { a: Array.from({ length: 500 }, (_, at) => `${'x'.repeat(at)}y`) })).not.toBe('ok')
    expect(process.cpuUsage(began).user).toBeLessThan(2_000_000)
  })

  test('one that cannot be bounded lets nothing through', async () => {
    for (const pattern of ['(?=a)a', '(a)\\1', `a{${2_000}}`])
      expect(await complaint({ type: 'object', properties: { a: { type: 'string', pattern } } }, { a: 'a' })).toContain('cannot be checked')
  })
})
