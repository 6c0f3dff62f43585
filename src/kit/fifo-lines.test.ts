import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Line } from './lines.ts'
import { createFifoLines } from './lines.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const ok = (text: string): Line => ({ ok: true, text })
const split = (chunks: readonly Uint8Array[], maxBytes = 1000) => {
  const lines = createFifoLines(maxBytes)
  return chunks.flatMap((chunk) => lines.push(chunk))
}

describe('a line that is no whole one', () => {
  test('is told as such when its writer has left, and the next is whole', () => {
    const lines = createFifoLines(1000)
    expect(lines.push(bytes('7\thalf'))).toEqual([])
    expect(lines.end()).toEqual([{ ok: false, text: '7\thalf', error: 'cut off: it has no newline' }])
    expect(lines.end()).toEqual([])
    expect(lines.push(bytes('8\twhole\n'))).toEqual([ok('8\twhole')])
    expect(lines.end()).toEqual([])
  })

  test('because it is too long is told once, with its beginning', () => {
    const lines = createFifoLines(5)
    expect(lines.push(bytes('12345'))).toEqual([])
    expect(lines.push(bytes('678'))).toEqual([])
    expect(lines.push(bytes('9'.repeat(100)))).toEqual([])
    expect(lines.push(bytes('tail\nnext\n12345\n'))).toEqual([
      { ok: false, text: expect.stringMatching(/^123456/), error: 'longer than 5 bytes' },
      ok('next'),
      ok('12345'),
    ])
    lines.push(bytes('1234567'))
    expect(lines.end()).toMatchObject([{ ok: false, error: 'longer than 5 bytes' }])
  })

  test('never takes more memory than the bound and a chunk', () => {
    const lines = createFifoLines(100)
    for (let chunk = 0; chunk < 1000; chunk += 1) expect(lines.push(bytes('x'.repeat(99)))).toEqual([])
    const [told] = lines.push(bytes('\n'))
    expect(told?.text.length).toBeLessThanOrEqual(200)
  })
})

test('lines end at a newline alone; what is no UTF-8 is shown as such', () => {
  const chunks = [bytes('a\r'), bytes('\n\n'), Uint8Array.from([0x62, 0xff, 0xc3]), Uint8Array.from([0xa9, 10]), bytes('half')]
  expect(split(chunks)).toEqual([ok('a\r'), ok(''), ok('b\ufffdé')])
})

test('lines are the same wherever they are torn', () => {
  const text = fc.string({ unit: fc.constantFrom('a', '\n', '\r', 'é', '€', '😀'), maxLength: 40 })
  fc.assert(
    fc.property(text, fc.array(fc.nat(80), { maxLength: 6 }), (whole, cuts) => {
      const all = bytes(whole)
      const at = [0, ...cuts.filter((cut) => cut < all.length).sort((a, b) => a - b), all.length]
      const torn = at.slice(1).map((end, piece) => all.slice(at[piece], end))
      expect(split(torn)).toEqual(whole.split('\n').slice(0, -1).map(ok))
    }),
  )
})
