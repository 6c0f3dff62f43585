import { expect, test } from 'bun:test'
import { rangeOf, rangeResponse } from './byte-range.ts'

test('one range of bytes is understood, from either end', () => {
  expect(rangeOf('bytes=0-3', 10)).toEqual({ from: 0, to: 4 })
  expect(rangeOf('bytes=4-', 10)).toEqual({ from: 4, to: 10 })
  expect(rangeOf('bytes=-3', 10)).toEqual({ from: 7, to: 10 })
  expect(rangeOf('bytes=-30', 10)).toEqual({ from: 0, to: 10 })
  expect(rangeOf('bytes=9-99', 10)).toEqual({ from: 9, to: 10 })
})

test('what is no single range is the whole, and bytes that are not there are none', () => {
  for (const header of [undefined, '', 'bytes=', 'bytes=-', 'bytes=a-b', 'bytes=0-1,3-4', 'lines=0-1', 'bytes=5-4', 'bytes=0x1-2'])
    expect([header, rangeOf(header, 10)]).toEqual([header, undefined])
  for (const header of ['bytes=10-', 'bytes=99-100', 'bytes=-0']) expect([header, rangeOf(header, 10)]).toEqual([header, 'none'])
  expect(rangeOf('bytes=-1', 0)).toBe('none')
  expect(rangeOf('bytes=0-', 0)).toBe('none')
})

test('a part says where it lies, the whole says how long it is', async () => {
  const bytes = new TextEncoder().encode('abc')
  const part = rangeResponse({ total: 10, bytes, from: 4 })
  expect([part.status, part.headers.get('content-range'), await part.text()]).toEqual([206, 'bytes 4-6/10', 'abc'])
  const none = rangeResponse({ total: 10 })
  expect([none.status, none.headers.get('content-range')]).toEqual([416, 'bytes */10'])
  const whole = rangeResponse({ total: 3, bytes })
  expect([whole.status, whole.headers.get('x-log-bytes'), whole.headers.get('content-range')]).toEqual([200, '3', null])
})
