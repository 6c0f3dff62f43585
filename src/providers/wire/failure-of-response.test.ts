import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { ProviderFailure } from '../../runtime/port.ts'
import { codeOf, cut, failureOf, libraryFailure, retryAfterMs, vendorMessage, waitIn } from './failure-of-response.ts'

const now = Date.parse('2026-01-01T00:00:00Z')
const waits = (fields: Record<string, string>) => retryAfterMs(new Headers(fields), now)

test('every status and text has a code', () => {
  fc.assert(
    fc.property(fc.option(fc.integer({ min: -1, max: 999 }), { nil: undefined }), fc.string(), (status, text) => {
      expect(codeOf(status, text)).toBeString()
    }),
  )
})

test('a word in an error text does not outweigh its status', () => {
  expect(codeOf(500, 'authentication backend down')).toBe('server')
  expect(codeOf(429, 'context length')).toBe('rate_limit')
  expect(codeOf(401, 'rate limit')).toBe('auth')
})

test('an error without a status is known by its words', () => {
  expect(failureOf({ type: 'overloaded_error', message: 'Overloaded' }, 'p').code).toBe('server')
  expect(failureOf({ error: { message: 'This model has a maximum context length of 8192' } }, 'p').code).toBe('context_length')
  expect(failureOf({ code: 429, message: 'Provider returned error' }, 'p').code).toBe('rate_limit')
  expect(failureOf({ code: '401', message: 'No auth' }, 'p').code).toBe('auth')
})

test('an error of any shape at all becomes a failure', () => {
  fc.assert(
    fc.property(fc.anything(), (error) => {
      expect(libraryFailure(error, 'p')).toBeInstanceOf(ProviderFailure)
    }),
  )
})

test('our own failure is found inside what wrapped it, also when the wrapping goes in circles', () => {
  const own = new ProviderFailure('timeout', 'silence')
  expect(libraryFailure(new Error('a', { cause: new Error('b', { cause: own }) }), 'p')).toBe(own)
  const circle = new Error('round')
  circle.cause = circle
  expect(libraryFailure(circle, 'p').code).toBe('bad_response')
})

test('the sentence of an error body is found in each known shape, else the text is cut', () => {
  expect(vendorMessage('{"error":{"message":"a"}}')).toBe('a')
  expect(vendorMessage('{"type":"error","error":{"type":"x","message":"b"}}')).toBe('b')
  expect(vendorMessage('{"error":"c"}')).toBe('c')
  expect(vendorMessage('{"detail":"d"}')).toBe('d')
  expect(vendorMessage('[{"error":{"message":"e"}}]')).toBe('e')
  expect(vendorMessage('<html>\n\n  <b>no</b>')).toBe('<html> <b>no</b>')
})

test('a message is one printable line of bounded length', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 3_000 }), (text) => {
      const line = cut(text)
      expect(line.length).toBeLessThanOrEqual(301)
      expect(line).not.toMatch(/[\p{Cc}\p{Cs}\n]/u)
    }),
  )
  expect(cut('a\u001b[31mred\u0007')).toBe('a [31mred')
})

test('Retry-After is read in every spelling and bounded', () => {
  expect(waits({})).toBeUndefined()
  expect(waits({ 'retry-after': '2' })).toBe(2_000)
  expect(waits({ 'retry-after': '0' })).toBe(0)
  expect(waits({ 'retry-after': '1.5' })).toBe(1_500)
  expect(waits({ 'retry-after': 'Thu, 01 Jan 2026 00:00:30 GMT' })).toBe(30_000)
  expect(waits({ 'retry-after': 'Thu, 01 Jan 1970 00:00:30 GMT' })).toBe(0)
  expect(waits({ 'retry-after': '1e400' })).toBeUndefined()
  expect(waits({ 'retry-after': '9'.repeat(400) })).toBe(86_400_000)
  expect(waits({ 'retry-after': 'tomorrow' })).toBeUndefined()
  expect(waits({ 'retry-after-ms': '250', 'retry-after': '9' })).toBe(250)
  expect(waits({ 'retry-after-ms': '' })).toBeUndefined()
})

test.each([
  ['{"error":{"message":"upstream is on fire","code":7}}', 'Provider returned error: upstream is on fire'],
  ['plain words', 'Provider returned error: plain words'],
  ['', 'Provider returned error'],
])('what the provider behind a gateway said is shown: %s', (raw, says) => {
  const error = { message: 'Provider returned error', code: 502, metadata: { raw, provider_name: 'Far' } }
  expect(vendorMessage(JSON.stringify({ error }))).toBe(says)
  expect(failureOf(error, 'p').message).toBe(`provider "p" reported an error: ${says}`)
})

test.each<[string, number | undefined]>([
  ['Rate limit reached for m in organization o on tokens per min (TPM): Limit 30000. Please try again in 2.75s. Visit https://x', 2_750],
  ['Please try again in 1m30s.', 90_000],
  ['Please try again in 250ms', 250],
  ['try again in 1h2m3.5s', 3_723_500],
  ['Please retry after 20 seconds.', 20_000],
  ['Please retry in 34.074824224s.', 34_075],
  ['wait 2 minutes before you try again', 120_000],
  ['Please wait for 5 sec', 5_000],
  ['try again in 9999999h', 86_400_000],
  ['Please try again later, the limit is 30 requests', undefined],
  ['try again in 5 models', undefined],
  ['Limit 100 per 2m', undefined],
  ['', undefined],
])('the time in the words %j', (text, ms) => {
  expect(waitIn(text)).toBe(ms)
})

test('an event of a stream that names a time is waited for', () => {
  const failure = failureOf({ type: 'rate_limit_error', message: 'Rate limit reached. Please try again in 250ms.' }, 'p')
  expect([failure.code, failure.detail.retryAfterMs]).toEqual(['rate_limit', 250])
})
