import { expect, test } from 'bun:test'
import { concat, utf8Bytes } from './bytes.ts'

test('parts are joined in order into bytes of their own', () => {
  const first = new Uint8Array([1, 2])
  const whole = concat([first, new Uint8Array(), new Uint8Array([3])])
  first[0] = 9
  expect(whole).toEqual(new Uint8Array([1, 2, 3]))
  expect(concat([])).toEqual(new Uint8Array())
})

test('a text has as many bytes as its UTF-8, short and long', () => {
  for (const text of ['', 'abc', 'é', '€', '😀', 'a\ud83d', '\ude00b', '\ud83d\ud83d\ude00', '\u0000\u007f\u0080\u07ff\u0800\uffff']) {
    const bytes = new TextEncoder().encode(text).length
    expect(utf8Bytes(text), JSON.stringify(text)).toBe(bytes)
    expect(utf8Bytes(text.repeat(4097)), JSON.stringify(text)).toBe(new TextEncoder().encode(text.repeat(4097)).length)
  }
})
