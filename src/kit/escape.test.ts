import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createEscaper, escapeHidden } from './escape.ts'

test.each([
  ['C0', 'a\u0000\u0007\u001b[31mb', String.raw`a\u0000\u0007\u001b[31mb`],
  ['DEL and C1', '\u007f\u009b31m\u0085', String.raw`\u007f\u009b31m\u0085`],
  ['bidi controls', '\u202a\u202e\u2066\u2069\u200e\u200f\u061c', String.raw`\u202a\u202e\u2066\u2069\u200e\u200f\u061c`],
  ['zero width, fillers, tags', 'a\u200bb\u2060\ufeff\u3164\u{e0041}', String.raw`a\u200bb\u2060\ufeff\u3164\udb40\udc41`],
  ['joiners where nothing is joined', 'a\u200db\u200cc\ufe0f', String.raw`a\u200db\u200cc\ufe0f`],
  ['line separators', '\u2028\u2029', String.raw`\u2028\u2029`],
  ['half characters', 'a\ud83db\udc00', String.raw`a\ud83db\udc00`],
  ['a lone carriage return', 'ok\rbad', String.raw`ok\u000dbad`],
])('%s are spelled out', (_, text, safe) => expect(escapeHidden(text)).toBe(safe))

test('a line end of two characters is one', () => expect(escapeHidden('a\r\nb\n')).toBe('a\nb\n'))

test.each(['ä ö ß ñ', '日本語', '👩‍💻👨‍👩‍👧 ❤️ 1️⃣ 🏳️‍🌈', 'می‌خواهم', 'क्‍ष', '١٢\u0601', '✓ → │ …', 'tab\there', '\u{1f600}'])(
  '%s stays as it is',
  (text) => expect(escapeHidden(text)).toBe(text),
)

const anything = fc.string({ unit: 'binary', maxLength: 40 })

test('JSON stays JSON, and equal when it is parsed', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) =>
      expect(JSON.parse(escapeHidden(JSON.stringify(value)))).toEqual(JSON.parse(JSON.stringify(value))),
    ),
  )
})

test('nothing that a terminal obeys is left of any text, and what is escaped once is escaped', () => {
  fc.assert(
    fc.property(anything, (text) => {
      const safe = escapeHidden(text)
      expect(safe).not.toMatch(/(?![\t\n])\p{Cc}|[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\u200b\ufeff]|\p{Cs}/u)
      expect(escapeHidden(safe)).toBe(safe)
    }),
    { numRuns: 500 },
  )
})

describe('in pieces', () => {
  const cut = (text: string, cuts: readonly number[], escaper = createEscaper()) => {
    let [at, out] = [0, '']
    for (const size of cuts) {
      out += escaper.push(text.slice(at, at + size))
      at += size
    }
    return out + escaper.push(text.slice(at)) + escaper.flush()
  }
  const pieces = fc.array(
    fc.constantFrom('a', '\r', '\n', '\u200d', '\u200c', '👩', '💻', '\ufe0f', 'م', '\ud83d', '\u001b', '\u202e', '1'),
    { maxLength: 14 },
  )

  test('a text is what it is as a whole, wherever it is cut', () => {
    fc.assert(
      fc.property(pieces, fc.array(fc.nat(4), { maxLength: 14 }), (parts, cuts) => {
        const text = parts.join('')
        expect(cut(text, cuts)).toBe(escapeHidden(text))
      }),
      { numRuns: 2000 },
    )
  })

  test('without escaping only half characters wait for their other half', () => {
    expect(
      cut(
        'a😀b\r\n',
        [2, 1, 1, 1],
        createEscaper((text) => text),
      ),
    ).toBe('a😀b\r\n')
    expect(createEscaper((text) => text).push('a\ud83d')).toBe('a')
  })
})

test('a joiner stays only right between two letters that are spelled with it', () => {
  expect(escapeHidden('م\u200cم')).toBe('م\u200cم')
  expect(escapeHidden('م\u200caم')).toBe('م\\u200caم')
})
