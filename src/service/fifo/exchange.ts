/** Questions to the brain or the claw and their answers, for a program that does other things meanwhile. */

import { type Answer, type Asking, createTalk } from './duplex.ts'
import { FRAME_BYTES } from './fifo-reader.ts'
import { openPipe, READER } from './open-pipe.ts'
import { createWaiter } from './wait.ts'

/** `died`: the bridge took the question and ended, each time that it was asked. `down`: it is not running, nor will it be soon. */
export type Exchanged = Answer | { readonly ok: false; readonly why: 'cancelled' | 'closed' | 'died' | 'down' }

/** What whoever keeps the bridge running tells of it. Without a word it may be there or not. */
export type BridgeWatch = {
  started(): void
  /** It will be started again after so many ms. */
  ended(againInMs: number): void
  /** Whether it has answered anything since it was started. */
  answered(): boolean
}

export type Exchange = {
  /** One at a time, in order; the time counts from when it is this question's turn. `text` ends as the wire demands. */
  ask(text: string, signal?: AbortSignal): Promise<Exchanged>
  readonly bridge: BridgeWatch
  /** A question under way is withdrawn and ends as `closed`, as does every later one. */
  close(): Promise<void>
}

export type ExchangeOptions = {
  readonly requestPath: string
  readonly answerPath: string
  readonly timeoutMs: number
  /** Of an answer. */
  readonly maxBytes?: number
  /** How often a question is asked again when the bridge ended with it. 0, for what may have been done, unless said. */
  readonly again?: number
}

/** Who would wait longer than this for the bridge to be started is told so at once. */
const DOWN_MS = 5_000

/**
 * How an answer is known to be this question's: see `createTalk`.
 * @throws errno errors; the paths are such as `createFifos` has looked at
 */
export function createExchange({ requestPath, answerPath, timeoutMs, maxBytes = FRAME_BYTES, again = 0 }: ExchangeOptions): Exchange {
  const [request, answer, waiter] = [openPipe(requestPath), openPipe(answerPath, READER), createWaiter(answerPath)]
  const talk = createTalk([request, answer], maxBytes)
  const closing = new AbortController()
  const state = { ends: 0, startsAt: 0, answered: false }
  let last: Promise<unknown> = Promise.resolve()

  async function run(text: string, signal: AbortSignal): Promise<Exchanged> {
    const until = performance.now() + timeoutMs
    for (let left = again; ; left -= 1) {
      const found = await attempt({ text, until, signal })
      if (found.ok || found.why !== 'died' || left === 0) return found
    }
  }

  /** A death counts when the bridge had begun to read. Its answer is looked for first: who ends after answering has answered. */
  async function attempt({ text, until, signal }: Attempt): Promise<Exchanged> {
    let asking: Asking | undefined
    for (let ends = state.ends; ; ) {
      if (signal.aborted) {
        asking?.cancel()
        return ended()
      }
      asking ??= talk.ask(text, until - performance.now())
      const found = asking.look()
      if (typeof found !== 'number') {
        state.answered ||= found.ok
        return found
      }
      if (state.ends !== ends) {
        ends = state.ends
        if (!asking.cancel()) return { ok: false, why: 'died' }
        asking = undefined
      }
      if (state.startsAt - performance.now() > DOWN_MS) {
        asking?.cancel()
        return { ok: false, why: 'down' }
      }
      await waiter.wait(found, signal)
    }
  }

  const bridge: BridgeWatch = {
    started() {
      state.startsAt = 0
      state.answered = false
    },
    ended(againInMs) {
      state.ends += 1
      state.startsAt = performance.now() + againInMs
    },
    answered: () => state.answered,
  }

  function ended(): Exchanged {
    return { ok: false, why: closing.signal.aborted ? 'closed' : 'cancelled' }
  }

  /** Who cancels while others are still asking need not wait for them. */
  async function ask(text: string, signal?: AbortSignal): Promise<Exchanged> {
    const either = AbortSignal.any(signal === undefined ? [closing.signal] : [closing.signal, signal])
    const turn = last.then(() => run(text, either))
    last = turn.catch(() => {})
    const left = Promise.withResolvers<Exchanged>()
    const leave = (): void => left.resolve(ended())
    if (either.aborted) return ended()
    either.addEventListener('abort', leave, { once: true })
    return await Promise.race([turn, left.promise]).finally(() => either.removeEventListener('abort', leave))
  }

  async function close(): Promise<void> {
    if (closing.signal.aborted) return
    closing.abort()
    await last
    waiter.close()
    request.close()
    answer.close()
  }

  return { ask, bridge, close }
}

type Attempt = { readonly text: string; readonly until: number; readonly signal: AbortSignal }
