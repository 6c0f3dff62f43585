import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { startReply } from './chat-reply.ts'
import { createRepeatMatcher } from './converse.ts'

const event = (delta: unknown, more = {}, choice = {}) =>
  JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: null, ...choice }], ...more })

/** A reader that has learned this event. */
function knowing(known: string) {
  const repeats = createRepeatMatcher()
  for (let n = 0; n < 16; n++) repeats.learn(known, JSON.parse(known))
  return repeats
}

test('an event with an escape, a quote or anything else that differs is read in full', () => {
  const { wordsOf } = knowing(event({ content: 'hello' }))
  const strangers = [
    event({ content: 'a "quote"' }),
    event({ content: 'a\nline' }),
    event({ content: '\ud800' }),
    event({ content: 'x', refusal: 'y' }),
    event({ content: 'x' }, {}, { finish_reason: 'stop' }),
    event({ content: 'x' }, { usage: { prompt_tokens: 1 } }),
    event({ content: 'x' }, { error: { message: 'no' } }),
    event({ content: null }),
    event({ reasoning: 'x' }),
    event({ content: 'x' }).replace('"c"', '"d"'),
    '{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"},"finish_reason":null}]}',
    '[DONE]',
  ]
  for (const stranger of strangers) expect(wordsOf(stranger)).toBeUndefined()
})

test.each([
  ['content', 'text'],
  ['reasoning_content', 'thinking'],
  ['reasoning', 'thinking'],
] as const)('words under %s are %s', (key, type) => {
  const { wordsOf } = knowing(event({ role: 'assistant', [key]: 'hello', refusal: null, tool_calls: [] }))
  expect(wordsOf(event({ role: 'assistant', [key]: 'wörld', refusal: null, tool_calls: [] }))).toEqual({ type, text: 'wörld' })
})

test.each([
  ['an end', event({ content: 'x' }, {}, { finish_reason: 'stop' })],
  ['a count', event({ content: 'x' }, { usage: { prompt_tokens: 1 } })],
  ['two things said', event({ content: 'x', reasoning: 'x' })],
  ['a call', event({ content: 'x', tool_calls: [{}] })],
  ['a list of parts', event({ content: [{ type: 'text', text: 'x' }] })],
  ['the same key elsewhere', `{"content":"x",${event({ content: 'x' }).slice(1)}`],
])('an event with %s is not taken for a pattern', (_, known) => {
  expect(knowing(known).wordsOf(known)).toBeUndefined()
})

test('a server whose events all differ is not studied for ever, one that repeats itself is', () => {
  const repeats = createRepeatMatcher()
  const at = (created: number) => event({ content: 'x' }, { created })
  const learn = (created: number) => repeats.learn(at(created), JSON.parse(at(created)))
  for (let n = 0; n < 20; n++) learn(n)
  expect(repeats.wordsOf(at(18))).toEqual({ type: 'text', text: 'x' })
  for (let n = 20; n < 40; n++) learn(n)
  expect(repeats.wordsOf(at(39))).toBeUndefined()
})

test('with the short cut and without it, the same is heard', () => {
  const word = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('a', '"', '\\', '"}', '\u2028', '🙂'))
  const said = fc.oneof(
    fc.record({ content: word }),
    fc.record({ reasoning: word }),
    fc.record({ reasoning_content: fc.option(word), content: fc.option(word) }),
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(said, fc.boolean()), { maxLength: 60 }), (deltas) => {
      const events = deltas.map(([delta, spaced]) => (spaced ? event(delta).replaceAll('":', '": ') : event(delta)))
      expect(heard(events, true)).toEqual(heard(events, false))
    }),
  )
})

function heard(events: readonly string[], short: boolean) {
  const repeats = createRepeatMatcher()
  const reply = startReply({ provider: 'p', model: 'm', maxBytes: 100_000, newId: (id) => id, log: () => {} })
  for (const each of events) {
    const words = short ? repeats.wordsOf(each) : undefined
    if (words !== undefined) reply.addText(words.type, words.text)
    else {
      reply.take(JSON.parse(each))
      repeats.learn(each, JSON.parse(each))
    }
  }
  reply.take({ choices: [{ finish_reason: 'stop' }] })
  reply.shown()
  return reply.result().parts
}
