import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { grouped } from '../text.ts'
import { capText, createCollector } from './output-limit.ts'

const NOTICE = /\[… ([\d,]+) of ([\d,]+) bytes omitted …\]\n/
const size = (text: string) => Buffer.byteLength(text)
const anyText = fc.string({ unit: fc.constantFrom('a', 'é', '漢', '🦋', '\n', 'line\n', '\ufeff'), maxLength: 2_000 })

describe('capText', () => {
  test('what fits is never touched, what does not never exceeds the limit and is counted exactly', () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 200, max: 3_000 }), (text, max) => {
        const capped = capText(text, max)
        if (size(text) <= max) return expect(capped).toBe(text)
        expect(size(capped)).toBeLessThanOrEqual(max)
        const [notice = '', omitted = '', total = ''] = NOTICE.exec(capped) ?? []
        const [head = '', tail = ''] = capped.split(notice)
        expect(total).toBe(grouped(size(text)))
        expect(text.endsWith(tail)).toBe(true)
        const shown = [head, head.replace(/\n$/, '')].filter((part) => text.startsWith(part)).map((part) => size(part) + size(tail))
        expect(shown.map((bytes) => grouped(size(text) - bytes))).toContain(omitted)
        expect(capped.includes('\ufffd')).toBe(false)
      }),
      { numRuns: 500 },
    )
  })

  test('it does not matter in which pieces the text came', () => {
    fc.assert(
      fc.property(fc.array(anyText, { maxLength: 6 }), fc.integer({ min: 200, max: 3_000 }), (pieces, max) => {
        const collector = createCollector(max)
        for (const piece of pieces) collector.push(piece)
        expect(collector.text()).toBe(capText(pieces.join(''), max))
        expect(collector.total()).toBe(size(pieces.join('')))
      }),
    )
  })

  test('the notice says what is missing, between whole lines', () => {
    const lines = Array.from({ length: 1_000 }, (_, i) => `line ${String(i).padStart(3, '0')}\n`).join('')
    const capped = capText(lines, 500)
    expect(capped).toStartWith('line 000\n')
    expect(capped).toEndWith('line 999\n')
    expect(capped).toMatch(/\nline \d\d\d\n\[… 8,5\d\d of 9,000 bytes omitted …\]\nline \d\d\d\n/)
  })
})
