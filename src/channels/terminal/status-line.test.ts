import { afterEach, describe, expect, jest, test } from 'bun:test'
import { createStatusLine, statusText } from './status-line.ts'

afterEach(() => void jest.useRealTimers())

/** A status line on a screen with the given columns, and a clock that the test moves. */
function screen(columns = 80) {
  jest.useFakeTimers()
  const seen = { text: '' }
  const status = createStatusLine({ put: (text) => (seen.text += text), columns: () => columns, now: Date.now })
  const take = () => {
    const { text } = seen
    seen.text = ''
    return text
  }
  return { status, take, pass: (ms: number) => jest.advanceTimersByTime(ms) }
}

const erased = '\r\u001b[K'
const line = (words: string) => `${erased}\u001b[2m${words}\u001b[22m`

test('it shows after 300 ms, counts seconds in place, and is gone before anything else is printed', () => {
  const { status, take, pass } = screen()
  status.begin('thinking')
  pass(299)
  expect(take()).toBe('')
  pass(1)
  expect(take()).toBe(line('thinking 0 s'))
  pass(2000)
  expect(take()).toBe(line('thinking 1 s') + line('thinking 2 s'))
  status.erase()
  expect(take()).toBe(erased)
  status.printed('an answer\n')
  pass(1000)
  expect(take()).toBe(line('thinking 3 s'))
  status.end()
  pass(5000)
  expect(take()).toBe(erased)
})

test('what is over within 300 ms is never seen', () => {
  const { status, take, pass } = screen()
  status.begin('thinking')
  pass(200)
  status.end()
  pass(5000)
  expect(take()).toBe('')
})

test('while the cursor stands within a line nothing is drawn', () => {
  const { status, take, pass } = screen()
  status.begin('thinking')
  status.printed('half a li')
  pass(3000)
  expect(take()).toBe('')
  status.printed('ne\n')
  pass(1000)
  expect(take()).toBe(line('thinking 4 s'))
})

test('another piece of work counts from its own beginning, or from the one that it names', () => {
  const { status, take, pass } = screen()
  const since = Date.now()
  status.begin('thinking')
  pass(5300)
  take()
  status.begin('shell')
  expect(take()).toBe(erased)
  pass(300)
  expect(take()).toBe(line('shell 0 s'))
  status.begin('http', undefined, since)
  expect(take()).toBe(erased)
  pass(300)
  expect(take()).toBe(line('http 5 s'))
  pass(100)
  expect(take()).toBe(line('http 6 s'))
  status.end()
})

test('a terminal that was resized is drawn to at once, in its new width', () => {
  const columns = { now: 80 }
  jest.useFakeTimers()
  const seen: string[] = []
  const status = createStatusLine({ put: (text) => seen.push(text), columns: () => columns.now, now: Date.now })
  status.begin('thinking')
  jest.advanceTimersByTime(300)
  columns.now = 10
  process.emit('SIGWINCH')
  expect(seen.at(-1)).toBe(line('thin… 0 s'))
  status.end()
  process.emit('SIGWINCH')
  expect(seen.at(-1)).toBe(erased)
})

describe('the text', () => {
  test.each([
    ['thinking', 7, 19, 'thinking 7 s'],
    ['thinking', 125, 19, 'thinking 2:05'],
    ['a_tool_with_a_very_long_name', 7, 19, 'a_tool_with_a_… 7 s'],
    ['日本語日本語日本語', 7, 19, '日本語日本語日… 7 s'],
    ['a\u001b[2J', 7, 19, 'a\\u001b[2J 7 s'],
    ['two\nlines', 7, 19, 'two lines 7 s'],
    ['thinking', 7, 6, 't… 7 s'],
    ['thinking', 7, 3, '7 s'],
    ['thinking', 7, 2, '7…'],
    ['thinking', 7, 0, ''],
  ])('%s after %i s in %i columns: %s', (what, seconds, columns, words) => {
    const text = statusText(what, seconds, columns)
    expect(text).toBe(words)
    expect(Bun.stringWidth(text)).toBeLessThanOrEqual(columns)
  })
})
