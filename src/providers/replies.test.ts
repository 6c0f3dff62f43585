/** Tests unusual but valid replies in all three protocols: each ends in exactly one `done`. */

import { describe, expect, test } from 'bun:test'
import { type Dialect, dialects, type Speech } from '../../test/support/dialects.ts'
import {
  type Outcome,
  outcomeOf,
  plain,
  providerAt,
  question,
  type Served,
  sends,
  serve,
  startCutter,
} from '../../test/support/vendor-fake.ts'
import type { WireConfig } from './wire/provider-settings.ts'

const says =
  (speech: Speech): Served =>
  (dialect) =>
    sends(dialect.events(speech))

type Good = readonly [string, Served, (outcome: Outcome) => void, Partial<WireConfig>?]

const parts = (outcome: Outcome) => (outcome.response?.parts ?? []).map(({ meta: _, ...part }) => part)
const text = (expected: string) => (outcome: Outcome) => {
  expect(outcome.shown).toBe(expected)
  expect(parts(outcome)).toEqual(expected === '' ? [] : [{ type: 'text', text: expected }])
}
const calls = (outcome: Outcome) => parts(outcome).flatMap((part) => (part.type === 'call' ? [part] : []))
const bytes = (dialect: Dialect, speech: Speech) => Buffer.from(dialect.events(speech).join(''))

function* slices(all: Uint8Array, size: number) {
  for (let at = 0; at < all.length; at += size) yield all.subarray(at, at + size)
}

const goods: readonly Good[] = [
  ['words come as they are written', says({ text: ['Hel', 'lo, ', 'wörld'] }), text('Hello, wörld')],
  [
    'an answer of exactly the limit is fine',
    says({ text: ['x'.repeat(600), 'é'.repeat(200)] }),
    text('x'.repeat(600) + 'é'.repeat(200)),
    { maxResponseBytes: 1_000 },
  ],
  ['an answer of exactly 1 MiB is fine', says({ text: Array(16).fill('x'.repeat(65_536)) }), text('x'.repeat(1_048_576))],
  [
    'line ends may be CRLF',
    (dialect) => sends(dialect.events({ text: ['a', 'b'] }).map((event) => event.replaceAll('\n', '\r\n'))),
    text('ab'),
  ],
  [
    'CR and LF may come apart',
    (dialect) =>
      sends(
        slices(
          Buffer.from(
            dialect
              .events({ text: ['a', 'b'] })
              .join('')
              .replaceAll('\n', '\r\n'),
          ),
          1,
        ),
      ),
    text('ab'),
  ],
  [
    'no space after the colon is fine',
    (dialect) => sends(dialect.events({ text: ['a', 'b'] }).map((event) => event.replaceAll(': {', ':{'))),
    text('ab'),
  ],
  [
    'comments and unknown fields are skipped',
    (dialect) => sends([': hello\n\nretry: 5\nfoo: bar\n\n', ...dialect.events({ text: ['a'] })]),
    text('a'),
  ],
  ['a byte order mark is skipped', (dialect) => sends(['\ufeff', ...dialect.events({ text: ['a'] })]), text('a')],
  [
    'the [DONE] mark may be missing',
    (dialect) => sends(dialect.events({ text: ['a'] }).filter((event) => !event.includes('[DONE]'))),
    text('a'),
  ],
  ['characters may be cut anywhere', (dialect) => sends(slices(bytes(dialect, { text: ['日本語 🙂'] }), 1)), text('日本語 🙂')],
  ['a surrogate pair may be spread over two deltas', says({ text: ['smile \ud83d', '\ude42!'] }), text('smile 🙂!')],
  ['half a surrogate pair is replaced', says({ text: ['a\ud83d', 'b', '\udc00'] }), text('a\ufffdb\ufffd')],
  ['invalid UTF-8 is replaced', (dialect) => sends(broken(bytes(dialect, { text: ['a~b'] }))), text('a\ufffdb')],
  ['a content type that is missing does not matter', (dialect) => new Response(dialect.events({ text: ['a'] }).join('')), text('a')],
  [
    'a whole JSON answer to a request for a stream is fine',
    (dialect) => plain(dialect.whole({ text: ['whole'] }), 'application/json')(dialect, { text: '' }),
    text('whole'),
  ],
  [
    'so is one that calls itself a stream',
    (dialect) => plain(`\n ${dialect.whole({ text: ['whole'] })}`, 'text/event-stream')(dialect, { text: '' }),
    text('whole'),
  ],
  ['a server without streams can be asked so', whole, text('whole'), { stream: false }],
  [
    'a slow drip is waited for',
    (dialect) => sends(dialect.events({ text: ['a', 'b', 'c'] }), 'close', 10),
    text('abc'),
    { idleTimeoutS: 2 },
  ],
  [
    'a tool that nobody has is passed on',
    says({ calls: [{ id: 'c1', name: 'launch_rocket', args: ['{"to":"moon"}'] }] }),
    (outcome) => {
      expect(calls(outcome)).toEqual([{ type: 'call', id: 'c1', name: 'launch_rocket', input: { to: 'moon' } }])
      expect(outcome.response?.stop).toBe('tool_calls')
    },
  ],
  [
    'arguments may come character by character',
    says({ calls: [{ id: 'c1', name: 'time', args: [...'{"zone":"Europe/Zürich","n":[1,2]}'] }] }),
    (outcome) => {
      expect(calls(outcome)[0]?.input).toEqual({ zone: 'Europe/Zürich', n: [1, 2] })
    },
  ],
  [
    'parallel calls may take turns',
    says({
      interleaved: true,
      calls: [
        { id: 'c1', name: 'read', args: ['{"path"', ':"a', '.txt"}'] },
        { id: 'c2', name: 'read', args: ['{"pa', 'th":', '"b.txt"}'] },
      ],
    }),
    (outcome) => {
      expect(calls(outcome).map((call) => call.input)).toEqual([{ path: 'a.txt' }, { path: 'b.txt' }])
    },
  ],
  [
    'calls of the same id get ids of their own',
    says({
      calls: [
        { id: 'same', name: 'read', args: ['{"path":"a"}'] },
        { id: 'same', name: 'read', args: ['{"path":"b"}'] },
      ],
    }),
    (outcome) => {
      expect(calls(outcome).map((call) => call.input)).toEqual([{ path: 'a' }, { path: 'b' }])
      expect(new Set(calls(outcome).map((call) => call.id)).size).toBe(2)
    },
  ],
  [
    'no arguments are an empty object',
    says({ calls: [{ id: 'c1', name: 'time', args: [] }] }),
    (outcome) => {
      expect(calls(outcome)).toEqual([{ type: 'call', id: 'c1', name: 'time', input: {} }])
    },
  ],
  [
    'arguments that are no JSON are kept as they came',
    says({ calls: [{ id: 'c1', name: 'time', args: ['{"zone": "Eur'] }] }),
    (outcome) => {
      expect(calls(outcome)).toEqual([{ type: 'call', id: 'c1', name: 'time', input: {}, malformed: '{"zone": "Eur' }])
    },
  ],
  [
    'arguments that are no object are kept as they came',
    says({ calls: [{ id: 'c1', name: 'time', args: ['[1,2]'] }] }),
    (outcome) => {
      expect(calls(outcome)[0]).toMatchObject({ input: {}, malformed: '[1,2]' })
    },
  ],
  [
    'text and calls come together',
    says({ text: ['Let me look.'], calls: [{ id: 'c1', name: 'time', args: ['{}'] }] }),
    (outcome) => {
      expect(parts(outcome).map((part) => part.type)).toEqual(['text', 'call'])
    },
  ],
]

function whole(dialect: Dialect, asked: { readonly text: string }): Response {
  expect(asked.text).not.toContain('"stream":true')
  return Response.json(JSON.parse(dialect.whole({ text: ['whole'] })))
}

function broken(all: Buffer): Uint8Array[] {
  const copy = Uint8Array.from(all)
  copy[all.indexOf('~')] = 0xff
  return [copy]
}

for (const dialect of dialects) {
  describe(dialect.kind, () => {
    for (const [name, answer, check, over] of goods) {
      test(name, async () => {
        const outcome = await serve(dialect, answer, over)
        expect([outcome.code, outcome.failure?.message]).toEqual([undefined, undefined])
        check(outcome)
      })
    }

    test('a reply cut off anywhere is the whole reply or a failure', async () => {
      const all = dialect.events({ text: ['one'], calls: [{ id: 'c1', name: 'time', args: ['{"a":1}'] }] })
      const cuts = all.flatMap((event, n) => [all.slice(0, n + 1), [...all.slice(0, n), event.slice(0, event.length / 2)]])
      for (const pieces of cuts) {
        const cutter = startCutter(pieces)
        const outcome = await outcomeOf(providerAt(dialect, cutter).provider.chat(question, new AbortController().signal))
        cutter.stop()
        expect(outcome.code ?? 'done').toBeOneOf(['network', 'bad_response', 'done'])
        if (outcome.response !== undefined) expect(calls(outcome)[0]?.input).toEqual({ a: 1 })
      }
    })
  })
}
