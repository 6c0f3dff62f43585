import { describe, expect, test } from 'bun:test'
import { createEditBuffer } from './edit-buffer.ts'

/** Presses the keys: one character is text, more are the name of a key. */
function typed(...keys: readonly string[]) {
  const buffer = createEditBuffer()
  for (const key of keys)
    if (key === 'up' || key === 'down') buffer.moveLine(key === 'up' ? -1 : 1)
    else if (!buffer.edit(key)) buffer.insert(key)
  return buffer
}

describe('characters are what a person sees', () => {
  test.each([['👨‍👩‍👧'], ['👍🏽'], ['🇩🇪'], ['é'], ['日']])('Backspace takes %s whole', (character) => {
    expect(typed('a', character, 'b', 'left', 'backspace').text()).toBe('ab')
    expect(typed('a', ...character, 'backspace').text()).toBe('a')
  })
})

test.each<[string, string[], string]>([
  ['Ctrl-A and Ctrl-E stay in the line', ['a', 'newline', 'b', 'ctrl-a', '1', 'ctrl-e', '2'], 'a\n1b2'],
  ['Ctrl-K cuts to the end of the line, then the newline', ['ab', 'newline', 'c', 'up', 'ctrl-k', 'ctrl-k'], 'ac'],
  ['Ctrl-U cuts to the beginning of the line', ['a', 'newline', 'bc', 'ctrl-u', 'd'], 'a\nd'],
  ['Ctrl-W takes a word of the shell', ['one two.three ', 'ctrl-w'], 'one '],
  ['Alt-Backspace takes a word of letters', ['one two.three', 'alt-backspace'], 'one two.'],
  ['Ctrl-Y puts back what was cut', ['one two', 'ctrl-w', 'ctrl-y', 'ctrl-y'], 'one twotwo'],
  ['Alt-B, Alt-F and Alt-D move and cut by words', ['one two three', 'alt-b', 'alt-b', 'alt-d', 'alt-f', '!'], 'one  three!'],
  ['Up and Down keep the column', ['abcd', 'newline', 'e', 'newline', 'fghi', 'up', 'up', '!', 'down', '?'], 'abcd!\ne?\nfghi'],
  ['nothing moves beyond the ends', ['left', 'up', 'a', 'right', 'down', 'delete', 'b'], 'ab'],
])('%s', (_, keys, text) => expect(typed(...keys).text()).toBe(text))

describe('a paste', () => {
  test('of a few lines is text, one of many lines is folded and sent whole', () => {
    const buffer = typed('a')
    buffer.paste('1\n2\n3')
    expect(buffer.rows('> ', 80).rows).toEqual(['> a1', '  2', '  3'])
    const long = Array.from({ length: 120 }, (_, at) => `line ${at}`).join('\n')
    buffer.paste(long)
    expect(buffer.rows('> ', 80).rows).toEqual(['> a1', '  2', '  3[120 lines]'])
    expect(buffer.text()).toBe(`a1\n2\n3${long}`)
    buffer.edit('backspace')
    expect(buffer.text()).toBe('a1\n2\n3')
  })

  test('of one long line is folded too', () => {
    const buffer = typed()
    buffer.paste('x'.repeat(1_048_576))
    expect(buffer.rows('> ', 80).rows).toEqual(['> [1,048,576 characters]'])
    expect(buffer.text()).toHaveLength(1_048_576)
  })
})

describe('the rows', () => {
  test.each([2, 3, 5, 9, 20, 80, 400])('never fill the last of %i columns, where the cursor must stand', (columns) => {
    const buffer = typed('日本語 and emoji 👩‍💻👍🏽 and words '.repeat(4))
    const { rows, cursor } = buffer.rows('> ', columns)
    for (const row of rows) expect(Bun.stringWidth(row)).toBeLessThan(Math.max(columns, 3))
    expect(cursor).toEqual({ row: rows.length - 1, column: Bun.stringWidth(rows.at(-1) ?? '') })
    expect(rows.join('').replaceAll(/[> ]/g, '')).toBe(buffer.text().replaceAll(' ', ''))
  })

  test('show what hides as an escape', () => {
    expect(typed('a\u202eb').rows('> ', 80).rows).toEqual(['> a\\u202eb'])
  })
})
