import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Line } from './lines.ts'
import { createSplitter, frame } from './lines.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const ok = (text: string): Line => ({ ok: true, text })

type Case = { readonly chunks: readonly (string | Uint8Array)[]; readonly maxBytes?: number }

function split({ chunks, maxBytes = 1000 }: Case): Line[] {
  const splitter = createSplitter(maxBytes)
  return chunks.flatMap((chunk) => splitter.push(typeof chunk === 'string' ? bytes(chunk) : chunk))
}

describe('one that is too long', () => {
  test('is skipped to the blank line, wherever its bytes are torn', () => {
    const text = 'long\nlonger\n\r\n\nsecond\n\nthird\n\n'
    for (let cut = 0; cut <= text.length; cut += 1) {
      const found = split({ chunks: [text.slice(0, cut), text.slice(cut)], maxBytes: 8 })
      // The shown text is what had arrived when the frame became too long.
      const shown = cut > 8 && cut < 14 ? text.slice(0, cut) : 'long\nlonger'
      expect(found[0]?.ok).toBe(false)
      expect(found[0]?.text).toStartWith(shown)
      expect(found.slice(1)).toEqual([ok('second'), ok('third')])
    }
    const told: Line = { ok: false, text: 'long\nlong', error: 'longer than 8 bytes' }
    expect(split({ chunks: [...text], maxBytes: 8 })).toEqual([told, ok('second'), ok('third')])
  })

  test('never holds more than the bound and a chunk', () => {
    const splitter = createSplitter(100)
    const found = Array.from({ length: 1000 }, () => splitter.push(bytes('x'.repeat(99)))).flat()
    expect(found).toHaveLength(1)
    expect(found[0]?.text).toBe('x'.repeat(198))
    expect(splitter.push(bytes('\n\nok\n\n'))).toEqual([ok('ok')])
  })

  test('shows at most 200 bytes of its beginning', () => {
    expect(split({ chunks: ['x'.repeat(5000)] })[0]?.text).toBe('x'.repeat(200))
  })
})

describe('frames', () => {
  test('end at a blank line, whatever ends their lines', () => {
    expect(split({ chunks: ['{"a":1}\n\n{"b":\n2}\r\n\r\n'] })).toEqual([ok('{"a":1}'), ok('{"b":\n2}\r')])
  })

  test('may be empty, which takes two newlines; one more newline belongs to no frame', () => {
    expect(split({ chunks: ['\n\n'] })).toEqual([ok('')])
    expect(split({ chunks: ['a\n\n\nb\n\n'] })).toEqual([ok('a'), ok('b')])
    expect(split({ chunks: ['a\n\n\n\nb\n\n'] })).toEqual([ok('a'), ok(''), ok('b')])
  })

  test('are the same wherever they are torn', () => {
    fc.assert(
      fc.property(text, cuts, (whole, at) => expect(split({ chunks: torn(whole, at) })).toEqual(framesOf(whole).map(ok))),
      { numRuns: 500 },
    )
  })

  test('carry any text as one frame, and the next after it', () => {
    fc.assert(
      fc.property(text, (whole) => {
        const carried = whole
          .replace(/[\r\n]+$/, '')
          .split('\n')
          .map((line, _, all) => (all.length > 1 && (line === '' || line === '\r') ? ` ${line}` : line))
        expect(split({ chunks: [frame(whole), frame('next')] })).toEqual([ok(carried.join('\n')), ok('next')])
      }),
      { numRuns: 500 },
    )
  })
})

const text = fc.string({ unit: fc.constantFrom('a', '\n', '\n', '\r', 'é', '€', '😀', ' '), maxLength: 40 })
const cuts = fc.array(fc.nat(80), { maxLength: 6 })

function torn(whole: string, cuts: readonly number[]): Uint8Array[] {
  const all = bytes(whole)
  const at = [0, ...cuts.filter((cut) => cut < all.length).sort((a, b) => a - b), all.length]
  return at.slice(1).map((end, piece) => all.slice(at[piece], end))
}

/** Computes the same result another way: over whole lines, without chunks. */
function framesOf(whole: string): string[] {
  const found: string[] = []
  let lines: string[] = []
  let blanks = 0
  for (const line of whole.split('\n').slice(0, -1)) {
    const isBlank = line === '' || line === '\r'
    if (!isBlank) {
      lines.push(line)
      blanks = 0
    } else if (lines.length > 0 || blanks === 1) {
      found.push(lines.join('\n'))
      lines = []
      blanks = 0
    } else blanks = 1
  }
  return found
}
