import { afterEach, expect, jest, test } from 'bun:test'
import { createKeys, type KeyPress } from './keys.ts'

afterEach(() => void jest.useRealTimers())

/** The keys that these pieces make, each piece a read of its own. */
function keysOf(...pieces: readonly string[]) {
  jest.useFakeTimers()
  const keys: KeyPress[] = []
  const take = createKeys((key) => keys.push(key))
  for (const piece of pieces) take(new TextEncoder().encode(piece))
  jest.advanceTimersByTime(2000)
  return keys.map(({ name, text }) => (text === undefined ? name : `${name}:${text}`))
}

test.each<[string, string, string[]]>([
  ['text', 'héllo 日', ['text:héllo 日']],
  ['Enter, once for CR LF', 'a\r\nb\n', ['text:a', 'enter', 'text:b', 'enter']],
  ['control keys', '\u0001\u0005\u0003\u001a\t\u007f\b', ['ctrl-a', 'ctrl-e', 'ctrl-c', 'ctrl-z', 'tab', 'backspace', 'backspace']],
  ['cursor keys of both modes', '\u001b[A\u001bOB\u001b[H\u001b[4~\u001b[3~', ['up', 'down', 'home', 'end', 'delete']],
  ['modified cursor keys', '\u001b[1;5C\u001b[1;3D', ['ctrl-right', 'alt-left']],
  ['Alt', '\u001bb\u001b\u007f\u001b\r', ['alt-b', 'alt-backspace', 'newline']],
  ['Shift-Enter where it is told', '\u001b[13;2u\u001b[27;2;13~', ['newline', 'newline']],
  ['Esc alone, and before another key', '\u001b\u001b[A\u001b', ['escape', 'up', 'escape']],
  ['focus', '\u001b[I\u001b[O', ['focus', 'blur']],
  ['a paste with keys in it', '\u001b[200~a\r\nb\u001b[A\u0003\u001b[201~c', ['paste:a\nb\u001b[A\u0003', 'text:c']],
])('%s', (_, bytes, keys) => {
  expect(keysOf(bytes)).toEqual(keys)
  if (!bytes.endsWith('\u001b'))
    expect(
      keysOf(...bytes.split(''))
        .map((key) => key.replace('text:', ''))
        .join(''),
    ).toBe(keys.map((key) => key.replace('text:', '')).join(''))
})

test.each([
  ['a cursor report', '\u001b[12;40R'],
  ['device attributes', '\u001b[?64;1;2;6;22c\u001b[>0;276;0c'],
  ['a mode report', '\u001b[?2026;2$y'],
  ['a colour', '\u001b]11;rgb:1e1e/1e1e/2e2e\u001b\\\u001b]10;rgb:ffff/ffff/ffff\u0007'],
  ['a version', '\u001bP>|tmux 3.4\u001b\\'],
  ['an APC string', '\u001b_Gi=31;OK\u001b\\'],
  ['a mouse', '\u001b[<0;12;3M\u001b[<0;12;3m\u001b[M !!'],
  ['a function key', '\u001b[15~\u001bOP\u001b[[A'],
  ['C1 and NUL', '\u0000\u0085\u009b'],
])('%s is never text, in one piece or in many', (_, bytes) => {
  expect(keysOf(`a${bytes}b`)).toEqual(['text:a', 'text:b'])
  expect(keysOf('a', ...bytes.split(''), 'b')).toEqual(['text:a', 'text:b'])
})

test('a report whose end never comes does not swallow what is typed later', () => {
  expect(keysOf('\u001b]11;rgb:1e')).toEqual([])
  expect(keysOf('\u001bP')).toEqual([])
  jest.useFakeTimers()
  const keys: KeyPress[] = []
  const take = createKeys((key) => keys.push(key))
  take(new TextEncoder().encode('\u001b]11;rgb'))
  jest.advanceTimersByTime(1100)
  take(new TextEncoder().encode('typed'))
  expect(keys).toEqual([{ name: 'text', text: 'typed' }])
})

test('a paste of 1 MB in pieces of 4 KB arrives whole', () => {
  const text = 'some words in a line\n'.repeat(50_000)
  const pieces = `\u001b[200~${text}\u001b[201~`.match(/[\s\S]{1,4096}/g) ?? []
  expect(keysOf(...pieces)).toEqual([`paste:${text}`])
})
