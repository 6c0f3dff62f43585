import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { dialects } from '../../../test/support/dialects.ts'
import { libraries, mergeDeltas } from './vendor-library.ts'

const encode = (text: string) => new TextEncoder().encode(text)
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
const delta = { within: '"delta":{', key: '"content":"' }
const event = (content: string, more = {}) =>
  `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content }, ...more }] })}\n\n`
const merge = (text: string) => decode(mergeDeltas(encode(text), delta))

test('events that differ in more than their text stay apart', () => {
  const apart = [
    event('a'),
    event('b', { finish_reason: 'stop' }),
    event('c', { finish_reason: null }),
    event('c', { finish_reason: null }).replace('"id":"c"', '"id":"d"'),
    'data: [DONE]\n\n',
    ': ping\n\n',
  ]
  expect(merge(apart.join(''))).toBe(apart.join(''))
})

test('an event that is not finished stays as it is', () => {
  const cut = event('bc').slice(0, -1)
  expect(merge(event('a') + cut)).toBe(event('a') + cut)
})

test('neighbours are joined, quotes and backslashes and all', () => {
  const events = [event('say "'), event('hi\\'), event('" \\\\"')].join('')
  expect(merge(`${events}data: [DONE]\n\n`)).toBe(`${event('say "hi\\" \\\\"')}data: [DONE]\n\n`)
})

test('what is thought or called is never joined to what is said', () => {
  const other = [
    `data: ${JSON.stringify({ content: 'x' })}\n\n`,
    `data: ${JSON.stringify({ choices: [{ delta: { reasoning_content: 'a' } }] })}\n\n`,
    `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [{ index: 0, function: { arguments: '{"content":"x"}' } }] } }] })}\n\n`,
  ]
  const text = other.flatMap((each) => [each, each]).join('')
  expect(merge(text)).toBe(text)
})

for (const dialect of dialects) {
  test(`${dialect.kind}: however the bytes are cut, the same is said`, () => {
    const words = fc.array(
      fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('"', '\\', '\n\n', 'data: {', '\ud83d', '\ude42', 'é')),
      { minLength: 1 },
    )
    fc.assert(
      fc.property(words, fc.array(fc.nat(4_000)), (text, cuts) => {
        const all = encode(dialect.events({ text, thinking: { text, signature: 's' } }).join(''))
        const at = [0, ...cuts.filter((cut) => cut < all.length).toSorted((a, b) => a - b), all.length]
        const pieces = at
          .slice(1)
          .map((end, index) =>
            mergeDeltas(all.subarray(at[index], end), dialect.kind === 'openai-compatible' ? delta : libraries[dialect.kind].delta),
          )
        expect(said(decode(Buffer.concat(pieces)))).toEqual(said(decode(all)))
      }),
    )
  })
}

/** Reduces events to their content without their number: joins all strings of the same place. */
function said(stream: string): Record<string, string> {
  const places: Record<string, string> = {}
  for (const line of stream.split('\n')) {
    if (!line.startsWith('data: {')) continue
    const walk = (value: unknown, path: string): void => {
      if (typeof value === 'object' && value !== null) for (const [key, member] of Object.entries(value)) walk(member, `${path}.${key}`)
      else if (/\.(content|reasoning_content|text|thinking|delta)$/.test(path)) places[path] = (places[path] ?? '') + String(value ?? '')
      else places[path] = String(value)
    }
    walk(JSON.parse(line.slice(6)), '')
  }
  return places
}
