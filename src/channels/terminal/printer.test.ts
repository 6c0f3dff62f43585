import { describe, expect, test } from 'bun:test'
import { type Printer, printTo, wordsOf } from './printer.ts'

const evil = 'a\u001b[2Jb\u009bc\u202ed\r\n'
const safe = `${String.raw`a\u001b[2Jb\u009bc\u202ed`}\n`

function printed(terminal: boolean, use: (printer: Printer) => void): string {
  const out: string[] = []
  use(printTo((text) => out.push(text), terminal))
  return out.join('')
}

describe.each([
  ['on a terminal', true],
  ['on a pipe', false],
])('%s', (_, terminal) => {
  test('words for people are escaped', () => expect(printed(terminal, ({ write }) => write(evil))).toBe(safe))

  test('our own marks are not', () =>
    expect(printed(terminal, ({ write }) => write([{ mark: 'dim' }, evil, { mark: 'normal' }]))).toBe(`\u001b[2m${safe}\u001b[22m`))

  test('data is escaped for a terminal alone', () => {
    expect(printed(terminal, ({ data }) => data(evil))).toBe(terminal ? safe : evil)
    expect(printed(terminal, ({ stream }) => [...evil].forEach(stream))).toBe(terminal ? safe : evil)
  })

  test('a text that comes in pieces ends where something else begins', () =>
    expect(
      printed(terminal, ({ stream, write, data }) => {
        stream('\ud83d')
        stream('\ude00 \ud83d')
        write('!')
        stream('x\ud83d')
        data('')
      }),
    ).toBe(`😀 ${terminal ? String.raw`\ud83d` : '\ud83d'}!x${terminal ? String.raw`\ud83d` : '\ud83d'}`))

  test('what the line editor moves with passes, what somebody typed or pasted does not', () => {
    const moves = '\u001b[1G\u001b[0J\u001b[12;3H\u001b[2A\r\u001b[K> '
    expect(printed(terminal, ({ editor }) => editor(`${moves}\u001b]0;x\u0007\u202e\u001b[?1049h\u009b2J`))).toBe(
      moves + String.raw`\u001b]0;x\u0007\u202e\u001b[?1049h\u009b2J`,
    )
  })
})

test('the words of what is printed are those without the marks', () => {
  expect([wordsOf('a'), wordsOf([{ mark: 'dim' }, 'a', { mark: 'normal' }, 'b'])]).toEqual(['a', 'ab'])
})
