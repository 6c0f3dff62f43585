import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createLineSplitter, type Line } from './lines.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const ok = (text: string): Line => ({ ok: true, text })
const textOf = (line: Line) => (line.ok ? line.text : 'too long')

/** Returns all lines of these chunks, the last one included. */
function linesOf(chunks: readonly (Uint8Array | string)[], maxBytes = 1000): Line[] {
  const splitter = createLineSplitter(maxBytes)
  const lines = chunks.flatMap((chunk) => splitter.push(chunk))
  const last = splitter.end()
  return last === undefined ? lines : [...lines, last]
}

describe('a line that is too long', () => {
  test('is told once, as soon as that is known, with its beginning, and the next line is whole', () => {
    const splitter = createLineSplitter(5)
    expect(splitter.push('12345')).toEqual([])
    expect(splitter.push('6')).toEqual([{ ok: false, text: '12345', error: 'line longer than 5 bytes, the rest of it is skipped' }])
    expect(splitter.push('789')).toEqual([])
    expect(splitter.push('…\nnext\n')).toEqual([ok('next')])
  })

  test('is told in its place between others', () => {
    expect(linesOf(['a\n123456\nb\n'], 5).map(textOf)).toEqual(['a', 'too long', 'b'])
  })

  test('without an end is not told again at the end', () => {
    expect(linesOf(['123456'], 5).map(textOf)).toEqual(['too long'])
  })

  test('is measured in bytes, and one of just the bound is kept', () => {
    expect(linesOf(['éé\n', 'ééé\n'], 5).map(textOf)).toEqual(['éé', 'too long'])
    expect(linesOf(['12345\n'], 5)).toEqual([ok('12345')])
  })

  test('shows a short beginning only', () => {
    const [line] = linesOf(['x'.repeat(5000)], 4000)
    expect(line?.text).toBe('x'.repeat(200))
  })

  test('has a bound that makes sense', () => {
    for (const bound of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) expect(() => createLineSplitter(bound)).toThrow('maxBytes')
  })
})

describe('a stream', () => {
  test('is split at newlines, empty lines count, a carriage return stays', () => {
    expect(linesOf(['a\n\nb\r\nc\u2028d\n'])).toEqual([ok('a'), ok(''), ok('b\r'), ok('c\u2028d')])
    expect(linesOf([])).toEqual([])
    expect(linesOf(['', new Uint8Array(), '\n'])).toEqual([ok('')])
  })

  test('keeps a torn last line until more comes or it ends, and then starts clean', () => {
    const splitter = createLineSplitter(100)
    expect(splitter.push('to')).toEqual([])
    expect(splitter.push(bytes('rn'))).toEqual([])
    expect(splitter.end()).toEqual(ok('torn'))
    expect(splitter.end()).toBeUndefined()
    expect(splitter.push('new\n')).toEqual([ok('new')])
  })

  test('starts clean after an over-long line that never ended', () => {
    const splitter = createLineSplitter(3)
    splitter.push('12345')
    expect(splitter.end()).toBeUndefined()
    expect(splitter.push('ok\n')).toEqual([ok('ok')])
  })

  test('does not hold on to a chunk that its owner uses again', () => {
    const splitter = createLineSplitter(100)
    const chunk = bytes('abc')
    splitter.push(chunk)
    chunk.fill(120)
    expect(splitter.push('\n')).toEqual([ok('abc')])
  })

  test('shows bytes that are no UTF-8 as such, and keeps a byte order mark', () => {
    expect(linesOf([Uint8Array.from([0x61, 0xff, 0x0a]), '\ufeffb\n'])).toEqual([ok('a\ufffd'), ok('\ufeffb')])
  })

  test('reports bytes that are not UTF-8 where it is strict, also those of a torn character, and goes on', () => {
    const splitter = createLineSplitter(100, 'strict')
    const wrong = { ok: false, text: 'a\ufffd', error: 'line is not UTF-8 text' } as const
    expect(splitter.push(Uint8Array.from([0x61, 0xff, 0x0a, 0xe2, 0x82]))).toEqual([wrong])
    expect(splitter.push(Uint8Array.from([0xac, 0x0a, 0x62]))).toEqual([ok('€')])
    expect(splitter.push(Uint8Array.from([0xe2, 0x82]))).toEqual([])
    expect(splitter.end()).toEqual({ ok: false, text: 'b\ufffd', error: 'line is not UTF-8 text' })
  })

  test('may tear a surrogate pair between strings; half a pair alone is shown as broken', () => {
    expect(linesOf(['\ud83d', '\ude00\n'])).toEqual([ok('😀')])
    expect(linesOf(['\ud83d', '\n\ud83d', bytes('x'), '\n\ud83d'])).toEqual([ok('\ufffd'), ok('\ufffdx'), ok('\ufffd')])
  })

  test('gives the same lines wherever it is torn', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'é', '\n', '😀', '\r', '€'), maxLength: 60 })
    fc.assert(
      fc.property(text, fc.array(fc.nat(120)), fc.integer({ min: 1, max: 20 }), fc.boolean(), (text, cuts, maxBytes, asText) => {
        const whole = asText ? text : bytes(text)
        const at = [0, ...cuts.filter((cut) => cut < whole.length).sort((a, b) => a - b), whole.length]
        const torn = at.slice(1).map((end, piece) => whole.slice(at[piece], end))
        const expected = text.split('\n').map((line) => (bytes(line).length > maxBytes ? 'too long' : line))
        if (expected.at(-1) === '') expected.pop()
        expect(linesOf(torn, maxBytes).map(textOf)).toEqual(expected)
      }),
      { numRuns: 500 },
    )
  })
})
