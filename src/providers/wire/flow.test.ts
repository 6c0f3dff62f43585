/** Tests when a transfer stops: back-pressure, a reader that stops early, cancels, retries and the total time. */

import { describe, expect, test } from 'bun:test'
import { dialects, upTo } from '../../../test/support/dialects.ts'
import { ask, outcomeOf, providerAt, question, sends, startFake, testDeps } from '../../../test/support/vendor-fake.ts'

const never = () => new AbortController().signal

for (const dialect of dialects) {
  describe(dialect.kind, () => {
    test('a reader that stops pulling stops the far side', async () => {
      let sent = 0
      const flood = function* () {
        yield* dialect.events({ text: ['x'] }).slice(0, -4)
        const [delta = ''] = dialect.events({ text: ['y'.repeat(1_000)] }).filter((event) => event.includes('yyy'))
        for (;;) {
          sent += delta.length
          yield delta
        }
      }
      const fake = startFake(() => sends(flood()))
      const { provider } = providerAt(dialect, fake, { config: { maxResponseBytes: 100_000_000 } })
      const chunks = provider.chat(question, never())[Symbol.asyncIterator]()
      await chunks.next()
      const settled = await settle(() => sent)
      expect(settled).toBeLessThan(30_000_000)
      expect(sent).toBe(settled)
      await chunks.return?.()
      await fake.hungUp
      fake.stop()
    })

    test('a reader that breaks out closes the connection', async () => {
      const fake = startFake(() => sends(upTo(dialect, 'x'), 'hold', 1))
      const { provider } = providerAt(dialect, fake)
      for await (const chunk of provider.chat(question, never())) if (chunk.type === 'text') break
      await fake.hungUp
      fake.stop()
    })

    for (const [when, answer] of [
      ['before the first byte', () => new Promise<Response>(() => {})],
      ['in the middle of the answer', () => sends(upTo(dialect, 'x'), 'hold')],
      ['in the middle of an error', () => new Response(new ReadableStream(), { status: 500 })],
    ] as const) {
      test(`a cancel ${when} is aborted at once and closes the connection`, async () => {
        const fake = startFake(answer)
        const { provider } = providerAt(dialect, fake, { config: { maxRetries: 2 } })
        const abort = new AbortController()
        const failure = outcomeOf(provider.chat(question, abort.signal))
        // A busy machine may take a while to send the question.
        while (fake.asked.length === 0) await Bun.sleep(1)
        setTimeout(() => abort.abort(), 20)
        expect((await failure).code).toBe('aborted')
        await fake.hungUp
        fake.stop()
        expect(fake.asked.length).toBe(1)
      })
    }

    test('a cancel reaches through a fetch that is deaf to signals', async () => {
      const fake = startFake(() => sends(upTo(dialect, 'x'), 'hold'))
      const deaf = (url: string, { signal: _, ...init }: RequestInit) => globalThis.fetch(url, init)
      const { provider } = providerAt(dialect, fake, { deps: { fetch: deaf } })
      const abort = new AbortController()
      const failure = outcomeOf(provider.chat(question, abort.signal))
      setTimeout(() => abort.abort(), 20)
      expect((await failure).code).toBe('aborted')
      await fake.hungUp
      fake.stop()
    })

    test('a call that was cancelled before it began sends nothing', async () => {
      const fake = startFake(() => sends(dialect.events({ text: ['hi'] })))
      const failure = await outcomeOf(providerAt(dialect, fake).provider.chat(question, AbortSignal.abort()))
      fake.stop()
      expect([failure.code, fake.asked.length]).toEqual(['aborted', 0])
    })

    test('a failure that may pass is tried again, with the reason logged, and no more often than configured', async () => {
      const fake = startFake((_, n) =>
        n < 2 ? new Response(dialect.errorBody('x', 'busy'), { status: 503 }) : sends(dialect.events({ text: ['hi'] })),
      )
      const quick = { sleep: (ms: number, signal: AbortSignal) => (ms >= 10_000 ? testDeps().sleep(ms, signal) : Promise.resolve()) }
      const { provider, deps } = providerAt(dialect, fake, { config: { maxRetries: 2 }, deps: quick })
      const { parts } = await ask(provider)
      expect(parts).toMatchObject([{ text: 'hi' }])
      const retries = deps.lines.filter((line) => line.event === 'provider retry')
      expect(retries.map(({ fields }) => [fields.attempt, fields.code, fields.waitMs])).toEqual([
        [1, 'server', 375],
        [2, 'server', 750],
      ])
      expect(retries[0]?.fields.message).toContain('busy')
      fake.stop()
      const down = startFake(() => new Response('', { status: 503 }))
      const failure = await outcomeOf(
        providerAt(dialect, down, { config: { maxRetries: 2 }, deps: quick }).provider.chat(question, never()),
      )
      down.stop()
      expect([failure.code, down.asked.length]).toEqual(['server', 3])
      expect(failure.failure?.message).toContain('(after 3 attempts)')
    })

    test('a failed attempt is hung up before the next one begins', async () => {
      const long = function* () {
        for (;;) yield 'x'.repeat(65_536)
      }
      const fake = startFake(async (_, n) => {
        if (n === 0) return new Response(sends(long()).body, { status: 503 })
        await fake.hungUp
        return sends(dialect.events({ text: ['hi'] }))
      })
      const { provider } = providerAt(dialect, fake, { config: { maxRetries: 1 } })
      expect((await ask(provider)).parts).toMatchObject([{ text: 'hi' }])
      fake.stop()
    })

    test('a line without an end is given up long before it fills the memory', async () => {
      let sent = 0
      const line = function* () {
        for (yield 'data: "'; ; sent += 65_536) yield 'x'.repeat(65_536)
      }
      const fake = startFake(() => sends(line()))
      const { code } = await outcomeOf(providerAt(dialect, fake).provider.chat(question, never()))
      fake.stop()
      expect(code).toBe('too_large')
      expect(sent).toBeLessThan(100_000_000)
    })

    test('no timer is left when a chat is over, however it ended', async () => {
      const pending = new Set<AbortSignal>()
      const sleep = (ms: number, signal: AbortSignal) => {
        pending.add(signal)
        return testDeps()
          .sleep(ms, signal)
          .finally(() => pending.delete(signal))
      }
      const fake = startFake((_, n) => (n === 0 ? sends(dialect.events({ text: ['x'] })) : new Response('', { status: 401 })))
      const { provider } = providerAt(dialect, fake, { deps: { sleep } })
      await ask(provider)
      await outcomeOf(provider.chat(question, never()))
      fake.stop()
      await Bun.sleep(0)
      expect(pending.size).toBe(0)
    })

    test('the total time covers all attempts and their waits', async () => {
      const fake = startFake(() => new Response('', { status: 503 }))
      const { provider } = providerAt(dialect, fake, { config: { maxRetries: 9, totalTimeoutS: 0.1 } })
      const failure = await outcomeOf(provider.chat(question, never()))
      fake.stop()
      expect([failure.code, fake.asked.length]).toEqual(['timeout', 1])
    })
  })
}

/** Returns the value of a counter when it no longer changes. */
async function settle(read: () => number): Promise<number> {
  for (let before = -1; ; ) {
    await Bun.sleep(60)
    const now = read()
    if (now === before) return now
    before = now
  }
}
