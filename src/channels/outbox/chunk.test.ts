import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { chunks, MESSAGE_LIMIT } from './chunk.ts'

const fence = '```'
const runs = (text: string) => [...text.matchAll(/(?<!`)`{3,10}(?!`)/g)].length

describe('what is never sent', () => {
  test('nothing, and what is all blank, gives no piece', () => {
    for (const text of ['', ' ', '\n\n\t', ' \n'.repeat(3_000)]) expect(chunks(text)).toEqual([])
  })

  test('blank lines longer than a piece leave no blank piece', () => {
    expect(chunks(`first${'\n'.repeat(7_000)}last`).map((piece) => piece.trim())).toEqual(['first', 'last'])
  })
})

describe('text without code', () => {
  test('2,000 units are one piece, as they are', () => {
    const text = ` ${'x'.repeat(MESSAGE_LIMIT - 2)} `
    expect(chunks(text)).toEqual([text])
  })

  test('a line that does not fit any more is left for the next piece', () => {
    const [short, long] = [`${'a'.repeat(600)}\n`, 'b '.repeat(750)]
    expect(chunks(short + long)).toEqual([short, long])
  })

  test('lines of exactly the limit stay whole', () => {
    const line = 'x'.repeat(MESSAGE_LIMIT)
    expect(chunks(`${line}\n${line}`).map((piece) => piece.trim())).toEqual([line, line])
  })

  test('a long line is cut between words', () => {
    const words = Array.from({ length: 600 }, (_, n) => `word${n}`)
    const pieces = chunks(words.join(' '))
    expect(pieces.length).toBe(3)
    expect(pieces.flatMap((piece) => piece.trim().split(' '))).toEqual(words)
  })

  test('a word longer than a piece is cut between two characters as people see them', () => {
    const family = '👩‍👩‍👧‍👦'
    const pieces = chunks(`x${family.repeat(400)}`)
    expect(pieces.join('')).toBe(`x${family.repeat(400)}`)
    for (const piece of pieces) expect(piece.replace('x', '').replaceAll(family, '')).toBe('')
  })

  test('a line break of two characters stays one', () => {
    expect(chunks(`${'x'.repeat(MESSAGE_LIMIT - 1)}\r\nnext`)[0]).toHaveLength(MESSAGE_LIMIT - 1)
  })

  test('a blank that carries an accent is no border between words', () => {
    expect(chunks(`${'x'.repeat(1_000)} ${'y'.repeat(500)} \u0301${'z'.repeat(600)}`)[0]).toHaveLength(1_001)
  })

  test('a line drawn of backticks is no fence', () => {
    const text = `${'`'.repeat(12)}\n${'words of a sentence\n'.repeat(200)}`
    expect(chunks(text).join('')).toBe(text)
  })

  test('one character longer than a piece is cut between its code points', () => {
    const zalgo = `a${'\u{1d165}'.repeat(3_000)}`
    const pieces = chunks(zalgo)
    expect(pieces.join('')).toBe(zalgo)
    expect(pieces.every((piece) => piece.isWellFormed())).toBe(true)
  })
})

describe('text with code', () => {
  const lines = (count: number) => Array.from({ length: count }, (_, n) => `  line ${n} of the code`).join('\n')

  test('a block that fits a piece of its own is not cut', () => {
    const block = `${fence}ts\n${lines(50)}\n${fence}\n`
    const [before, after] = ['words '.repeat(200), 'more words '.repeat(100)]
    const pieces = chunks(`${before}\n${block}${after}`)
    expect(pieces[0]).toBe(`${before}\n`)
    expect(pieces[1]?.startsWith(block)).toBe(true)
    expect(pieces.join('')).toBe(`${before}\n${block}${after}`)
  })

  test('a longer one is closed, and opened again in its language', () => {
    const pieces = chunks(`See:\n${fence}python\n${lines(200)}\n${fence}\nDone.`)
    expect(pieces.length).toBeGreaterThan(2)
    expect(pieces[0]).toStartWith(`See:\n${fence}python\n  line 0 of`)
    for (const piece of pieces.slice(0, -1)) expect(piece).toEndWith(` of the code\n${fence}`)
    for (const piece of pieces.slice(1)) expect(piece).toStartWith(`${fence}python\n  line `)
    expect(pieces.at(-1)).toEndWith(`\n${fence}\nDone.`)
    expect(pieces.join('').match(/line \d+ of/g)).toHaveLength(200)
  })

  test('a block that opens at the very end of a piece opens in the next', () => {
    for (const length of [1_950, 1_985, 1_990, 1_995]) {
      const text = `${'x'.repeat(length)}\n${fence}js\n${'y\n'.repeat(2_000)}${fence}`
      expect(chunks(text)[0]).toBe(`${'x'.repeat(length)}\n`)
    }
  })

  test('a closing fence that falls to the next piece leaves no empty block there', () => {
    for (let length = 1_970; length < 2_010; length += 1) {
      const pieces = chunks(`${fence}\n${'z'.repeat(length)}\n\n${fence}\nafter`)
      expect(pieces.map(runs).every((count) => count % 2 === 0)).toBe(true)
      for (const piece of pieces) expect(piece).toMatch(/z|^\s*after$/)
    }
  })

  test('a block that the model never closed is closed in every piece', () => {
    const pieces = chunks(`Here:\n${fence}sql\n${lines(150)}`)
    expect(pieces.every((piece) => runs(piece) === 2)).toBe(true)
  })

  test('a lone run of backticks in a sentence opens nothing', () => {
    const text = `A fence is ${fence} and then\n${'words of a sentence\n'.repeat(200)}`
    expect(chunks(text).join('')).toBe(text)
  })

  test('a fence in the middle of a line is one too, as Discord sees it', () => {
    const pieces = chunks(`The code: ${fence}js\n${lines(150)}\n${fence} and so on`)
    expect(pieces.every((piece) => runs(piece) === 2)).toBe(true)
  })
})

describe('any text', () => {
  const bare = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 40 }).map((text) => text.replaceAll('`', "'")),
    fc.constantFrom(
      '\n',
      '\n\n',
      ' ',
      '\r\n',
      'e\u0301',
      '👩‍👩‍👧‍👦',
      '🇩🇪🇫🇷',
      '`code`',
      'x'.repeat(150),
      ' '.repeat(150),
      'A long line. '.repeat(20),
    ),
  )
  const prose = fc.array(bare, { maxLength: 20 }).map((parts) => parts.join(''))
  const code = fc
    .tuple(fc.constantFrom('', 'js', 'c++', 'objective-c'), prose)
    .map(([name, body]) => `\n${fence}${name}\n${body}\n${fence}\n`)
  const answer = fc.array(fc.oneof(prose, code), { maxLength: 8 }).map((parts) => parts.join(''))
  const limit = fc.integer({ min: 200, max: 700 })
  const plain = (text: string) => text.replace(/(?<!`)`{3,10}(?!`)(js|c\+\+|objective-c)?/g, '').replace(/\s/g, '')

  test('every piece fits, is not blank and holds whole characters; its fences are in pairs', () => {
    fc.assert(
      fc.property(answer, limit, (text, most) => {
        for (const piece of chunks(text, most)) {
          expect(piece.length).toBeLessThanOrEqual(most)
          expect(piece.trim()).not.toBe('')
          expect(piece.isWellFormed()).toBe(true)
          expect(runs(piece) % 2).toBe(0)
        }
      }),
      { numRuns: 400 },
    )
  })

  test('the pieces hold the text, in order, and nothing but it', () => {
    fc.assert(
      fc.property(answer, limit, (text, most) => expect(plain(chunks(text, most).join('\n'))).toBe(plain(text))),
      { numRuns: 400 },
    )
  })

  test('without code the pieces are the text itself, cut between characters as people see them', () => {
    fc.assert(
      fc.property(prose, limit, (text, most) => {
        const starts = new Set([...new Intl.Segmenter('en').segment(text)].map((one) => one.index)).add(text.length)
        let at = 0
        for (const piece of chunks(text, most)) {
          const start = text.indexOf(piece, at)
          expect(text.slice(at, start).trim()).toBe('')
          at = start + piece.length
          expect(starts.has(start) && starts.has(at)).toBe(true)
        }
        expect(text.slice(at).trim()).toBe('')
      }),
      { numRuns: 400 },
    )
  })

  test('whatever it is, nothing of it is lost', () => {
    const wild = fc.array(
      fc.oneof(fc.string({ unit: 'binary', maxLength: 30 }), fc.constantFrom('`', '``', fence, '````', '\n', 'y'.repeat(90))),
    )
    fc.assert(
      fc.property(wild, limit, (parts, most) => {
        const wanted = [...parts.join('').replace(/[\s`]/g, '')]
        const sent = chunks(parts.join(''), most)
        expect(sent.every((piece) => piece.length <= most && piece.trim() !== '')).toBe(true)
        let found = 0
        for (const character of sent.join('')) if (character === wanted[found]) found += 1
        expect(found).toBe(wanted.length)
      }),
      { numRuns: 100 },
    )
  })
})
