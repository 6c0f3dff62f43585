import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { readEvents } from './events.ts'

const encode = (text: string) => new TextEncoder().encode(text)

/** All events of a body that arrives in these pieces, and the incomplete rest. */
function read(...pieces: readonly (string | Uint8Array)[]) {
  const reader = readEvents()
  const events = pieces.flatMap((piece) => [...reader.take(typeof piece === 'string' ? encode(piece) : piece)])
  return { events, rest: reader.rest() }
}

/** The standard's algorithm on a complete text. */
function reference(body: string): string[] {
  const events: string[] = []
  let data: string[] = []
  const lines = body.replace(/^\ufeff/, '').split(/\r\n|\n|\r/)
  for (const line of lines.slice(0, -1)) {
    if (line === '') {
      if (data.join('\n') !== '') events.push(data.join('\n'))
      data = []
    } else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''))
  }
  return events
}

test('an event that was not finished is none, and is told apart', () => {
  expect(read('data: a\n\ndata: b\n')).toEqual({ events: ['a'], rest: 'b' })
  expect(read('data: a\n\ndata: b')).toEqual({ events: ['a'], rest: 'b' })
  expect(read('data: a\n\n')).toEqual({ events: ['a'], rest: undefined })
  expect(read()).toEqual({ events: [], rest: undefined })
})

test('several data lines are one event, with and without the space; an event without data is none', () => {
  expect(read('data: a\ndata:b\ndata:  c\n\nevent: x\n\ndata:\n\ndatum: y\n\n').events).toEqual(['a\nb\n c'])
})

test('an error in a field of its own is an event too, wherever it is cut', () => {
  const body = 'data: a\n\nerror: {"code":500}\n\n'
  for (let cut = 0; cut <= body.length; cut++) expect(read(body.slice(0, cut), body.slice(cut)).events).toEqual(['a', '{"code":500}'])
})

test('an event is there as soon as its last line is, however that ends', () => {
  const reader = readEvents()
  expect(reader.take(encode('data: a\r\n\r'))).toEqual([])
  expect(reader.take(encode('\n'))).toEqual(['a'])
  expect(reader.take(encode('data: b\r\r'))).toEqual(['b'])
  expect(reader.take(new Uint8Array())).toEqual([])
  expect(reader.take(encode('\ndata: c\n\n'))).toEqual(['c'])
})

test('invalid bytes are replaced, and a byte order mark counts only at the very beginning', () => {
  expect(
    read(Uint8Array.of(0xef, 0xbb), Uint8Array.of(0xbf, ...encode('data: a'), 0xff, ...encode('b\n\ndata: \ufeffc\n\n'))).events,
  ).toEqual(['a\ufffdb', '\ufeffc'])
})

test('however a body is cut and its lines end, the events are those of the standard', () => {
  const bits = [
    'data: ',
    'data:',
    ': ping',
    'event: x',
    '\n',
    '\n\n',
    '\r\n',
    '\r\n\r\n',
    '\r',
    '\r\r',
    'é',
    '日',
    '🙂',
    '{"a":1}',
    '\ufeff',
    ' ',
  ]
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...bits), { maxLength: 30 }), fc.array(fc.nat(120), { maxLength: 12 }), (words, cuts) => {
      // In a body that ends with LF, a final CR is unambiguous.
      const body = `${words.join('')}\n`
      const all = encode(body)
      const at = [0, ...cuts.filter((cut) => cut < all.length).toSorted((a, b) => a - b), all.length]
      expect(read(...at.slice(1).map((end, index) => all.subarray(at[index], end))).events).toEqual(reference(body))
    }),
    { numRuns: 1_000 },
  )
})
