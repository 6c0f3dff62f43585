import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { isToolName, parseDescription } from './description.ts'

const good = {
  name: 'weather',
  description: 'Says the weather.',
  parameters: { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'] },
}
const why = (value: unknown) => {
  const parsed = parseDescription(typeof value === 'string' ? value : JSON.stringify(value))
  return parsed.ok ? 'taken' : parsed.why
}

test('what is no JSON object is refused with what it was', () => {
  for (const text of ['', 'Usage: weather CITY', '[]', '"x"', 'null', '{"name":"x"', '42'])
    expect(why(text)).toStartWith('printed no JSON object')
  for (const hidden of ['\u001b', '\u202e']) expect(why(`${hidden}[31mred`)).not.toContain(hidden)
})

test('a name that a vendor or a shell would trip over is refused', () => {
  for (const name of [undefined, 1, '', 'a b', '-x', '_x', '1x', 'ä', 'x'.repeat(65), 'x\n', '../x', 'x.y'])
    expect(why({ ...good, name })).toStartWith('calls itself')
  for (const name of ['x', 'Get_Weather-2', 'x'.repeat(64)]) expect(isToolName(name)).toBe(true)
})

test('a description must say something, and not too much', () => {
  for (const description of [undefined, 1, '', '  \n']) expect(why({ ...good, description })).toStartWith('has no "description"')
  expect(why({ ...good, description: 'x'.repeat(4_097) })).toStartWith('has a description of 4097 characters')
})

test('parameters must be the schema of an object', () => {
  for (const [parameters, says] of [
    [undefined, 'has no "parameters"'],
    [[], '"parameters" that are not a JSON object'],
    [{}, '"parameters" of type undefined'],
    [{ type: 'string' }, '"parameters" of type "string"'],
    [{ type: ['object'] }, '"parameters" of type'],
    [{ type: 'object', properties: [] }, '"properties" that are not a JSON object'],
    [{ type: 'object', required: 'city' }, '"required" that is not a list'],
    [{ type: 'object', required: [1] }, '"required" that is not a list'],
  ] as const)
    expect(why({ ...good, parameters })).toContain(says)
})

test('an expression that cannot be checked in bounded time is refused with what it is', () => {
  const parameters = (pattern: string) => ({ type: 'object', properties: { a: { type: 'array', items: { type: 'string', pattern } } } })
  expect(why({ ...good, parameters: parameters('^(?!x).*$') })).toBe(
    'has "parameters" that cannot be checked: the expression "^(?!x).*$" cannot be used: "(?" groups other than (?:…) are not allowed: they need backtracking; write the cases out',
  )
  expect(why({ ...good, parameters: { type: 'object', patternProperties: { '(a)\\1': {} } } })).toContain('"\\1" is not allowed')
  expect(parseDescription(JSON.stringify({ ...good, parameters: parameters('(a+)+$') })).ok).toBe(true)
})

test('a schema deeper than any sane one is refused, without running out of stack', () => {
  const deep = `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`
  expect(why(`{"name":"x","description":"y","parameters":{"type":"object","properties":${deep}}}`)).toMatch(
    /nested more than|printed no JSON object/,
  )
})

test('a sound description is taken; what else it claims is not', () => {
  expect(parseDescription(JSON.stringify({ ...good, risk: 'low', source: '/etc', timeoutMs: 1 }))).toEqual({ ok: true, spec: good })
  expect(parseDescription(JSON.stringify({ ...good, description: ' Says \ud800 it.\n', parameters: { type: 'object' } }))).toMatchObject({
    ok: true,
    spec: { description: 'Says \ufffd it.', parameters: { type: 'object' } },
  })
})

test('where it reads its arguments is taken from one word only', () => {
  expect(parseDescription(JSON.stringify({ ...good, input: 'stdin' }))).toEqual({ ok: true, spec: good, input: 'stdin' })
  expect(why({ ...good, input: 'argument' })).toContain('has "input" "argument"')
})

test('no text makes it throw', () => {
  const text = fc.oneof(
    fc.string(),
    fc.json(),
    fc.jsonValue().map((parameters) => JSON.stringify({ ...good, parameters })),
  )
  fc.assert(
    fc.property(text, (any) => {
      expect(typeof parseDescription(any).ok).toBe('boolean')
    }),
  )
})
