import { expect, test } from 'bun:test'
import { flat, isMadeOf, isPlain } from './plain.ts'

test('white space of any kind and amount is one space on one line', () => {
  const texts = ['', 'a b', 'a  b', 'a\nb', 'a\r\n\t b', '\u00a0a\u2003\u3000b\ufeff', ' a ', `${'a  '.repeat(200)}b`]
  expect(texts.map(flat)).toEqual(['', 'a b', 'a b', 'a b', 'a b', ' a b ', ' a ', `${'a '.repeat(200)}b`])
})

test('printable ASCII is plain, and nothing else', () => {
  for (let code = 0; code < 0x3000; code++) {
    const char = String.fromCharCode(code)
    expect(isPlain(`a${char}b`), code.toString(16)).toBe(/^[ -~]$/.test(char))
  }
  expect([isPlain(''), isPlain('x'.repeat(300)), isPlain('x'.repeat(301)), isPlain('😀')]).toEqual([true, true, false, false])
})

test('made of these characters and no others', () => {
  expect([isMadeOf('abba', 'ab'), isMadeOf('abc', 'ab'), isMadeOf('', 'ab')]).toEqual([true, false, true])
})
