import { expect, test } from 'bun:test'
import { testDeps } from '../../../test/support/vendor-fake.ts'
import type { FailureCode } from '../../runtime/event.ts'
import { type ModelChunk, ProviderFailure } from '../../runtime/port.ts'
import { waitMs, withRetry } from '../http-provider.ts'

type Step = FailureCode | { readonly code: FailureCode; readonly after?: number; readonly shown?: string; readonly status?: number } | 'ok'

type Detail =
  | Exclude<Step, string>
  | { readonly code: 'ok'; readonly after?: undefined; readonly shown?: undefined; readonly status?: undefined }

function stepOf(step: Step): Detail {
  return typeof step === 'string' ? { code: step } : step
}

/** Plays one step per attempt; returns what was shown, slept and thrown. */
async function play(
  steps: readonly Step[],
  options: { readonly maxRetries?: number; readonly random?: number; readonly signal?: AbortSignal } = {},
) {
  const slept: number[] = []
  const sleep = async (ms: number) => void slept.push(ms)
  const deps = { ...testDeps({ random: () => options.random ?? 0 }), sleep }
  let attempts = 0
  async function* attempt(): AsyncGenerator<ModelChunk> {
    const step = steps[attempts++] ?? 'ok'
    const { code, after, shown, status } = stepOf(step)
    if (shown !== undefined) yield { type: 'text', text: shown }
    if (code !== 'ok') throw new ProviderFailure(code, `it was ${code}`, { retryAfterMs: after, status })
    yield { type: 'text', text: 'fine' }
  }
  const signal = options.signal ?? new AbortController().signal
  let shown = ''
  let code: FailureCode | undefined
  try {
    for await (const chunk of withRetry({ provider: 'p', attempt, maxRetries: options.maxRetries ?? 2, signal, deps })) {
      if (chunk.type === 'text') shown += chunk.text
    }
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error
    code = error.code
  }
  return { shown, code, slept, attempts, log: deps.lines }
}

test.each(['auth', 'bad_request', 'bad_response', 'context_length', 'too_large', 'timeout', 'aborted', 'unknown'] as const)(
  '%s is not tried again',
  async (code) => {
    expect(await play([code])).toMatchObject({ code, attempts: 1, slept: [], log: [] })
  },
)

test('nothing is tried again once a piece was shown', async () => {
  expect(await play([{ code: 'network', shown: 'half' }])).toMatchObject({ shown: 'half', code: 'network', attempts: 1 })
})

test.each(['rate_limit', 'network', 'server'] as const)('%s is tried again and logged', async (code) => {
  const { shown, log } = await play([code])
  expect(shown).toBe('fine')
  expect(log).toEqual([
    { level: 'warn', event: 'provider retry', fields: { provider: 'p', attempt: 1, code, message: `it was ${code}`, waitMs: 250 } },
  ])
})

test.each([408, 504])('a timeout that the server reports with %i is tried again, as long as it asks for', async (status) => {
  expect(await play([{ code: 'timeout', status }])).toMatchObject({ shown: 'fine', slept: [250] })
  expect(await play([{ code: 'timeout', status, after: 3_000 }])).toMatchObject({ shown: 'fine', slept: [3_000] })
  expect(await play(Array(9).fill({ code: 'timeout', status }))).toMatchObject({ code: 'timeout', attempts: 3 })
})

test('attempts are bounded, and none at all may be asked for', async () => {
  expect(await play(Array(9).fill('server'))).toMatchObject({ code: 'server', attempts: 3 })
  expect(await play(['server'], { maxRetries: 0 })).toMatchObject({ code: 'server', attempts: 1 })
})

test('waits double, are jittered over half their length and end at eight seconds', async () => {
  const failure = new ProviderFailure('server', '')
  const wait = (tries: number, random: number) => waitMs({ tries, failure, random: () => random })
  expect([1, 2, 3, 9].map((tries) => wait(tries, 0))).toEqual([250, 500, 1_000, 4_000])
  expect([1, 2, 3, 9].map((tries) => wait(tries, 1))).toEqual([500, 1_000, 2_000, 8_000])
})

test('a Retry-After is waited out in full', async () => {
  expect(await play([{ code: 'rate_limit', after: 5_000 }], { random: 1 })).toMatchObject({ shown: 'fine', slept: [5_250] })
})

test('a Retry-After longer than we wait at all is not waited for', async () => {
  expect(await play([{ code: 'rate_limit', after: 30_001 }])).toMatchObject({ code: 'rate_limit', slept: [], attempts: 1 })
})

test('all waits together are bounded', async () => {
  const steps = Array<Step>(9).fill({ code: 'rate_limit', after: 12_000 })
  expect(await play(steps, { maxRetries: 8 })).toMatchObject({ code: 'rate_limit', slept: [12_000, 12_000], attempts: 3 })
})

test('a cancel during a wait ends it', async () => {
  const reason = new ProviderFailure('aborted', 'cancelled')
  expect(await play(['server'], { signal: AbortSignal.abort(reason) })).toMatchObject({ code: 'server', attempts: 1 })
  const abort = new AbortController()
  const deps = { ...testDeps(), sleep: async () => abort.abort(reason) }
  const fails = { [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new ProviderFailure('server', 'down')) }) }
  const chunks = withRetry({ provider: 'p', attempt: () => fails, maxRetries: 2, signal: abort.signal, deps })
  expect(chunks.next()).rejects.toBe(reason)
})
