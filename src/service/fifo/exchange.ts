/** Asks the brain or the claw questions asynchronously, for a program that does other work meanwhile. */

import { type BridgeAnswer, createDuplex, type PendingQuestion } from './duplex.ts'
import { createWaiter, FRAME_BYTES } from './fifo-reader.ts'
import { openPipe, READER } from './open-pipe.ts'

/** `died`: the bridge took the question and ended, on every attempt. `down`: it is not running and will not start soon. */
export type ExchangeResult = BridgeAnswer | { readonly ok: false; readonly why: 'cancelled' | 'closed' | 'died' | 'down' }

/** Receives the reports of the bridge's supervisor. Without a report the bridge may be running or not. */
export type BridgeWatch = {
  started(): void
  /** The supervisor starts it again after this many ms. */
  ended(againInMs: number): void
  /** Tells whether it has answered any question since it was started. */
  answered(): boolean
}

export type Exchange = {
  /**
   * Queues a question: the bridge gets one at a time, in order. The timeout starts with the question's turn. `text` ends as the protocol
   * demands.
   */
  ask(text: string, signal?: AbortSignal): Promise<ExchangeResult>
  readonly bridge: BridgeWatch
  /** Withdraws a question in progress, which ends as `closed`; so does every later one. */
  close(): Promise<void>
}

export type ExchangeOptions = {
  readonly requestPath: string
  readonly answerPath: string
  readonly timeoutMs: number
  /** The limit for an answer. */
  readonly maxBytes?: number
  /** How often to ask a question again when the bridge ended with it. Default 0, because the bridge may already have acted on it. */
  readonly again?: number
}

/** If the bridge will start only after more than this many ms, a question fails at once. */
const DOWN_MS = 5_000

/**
 * `createDuplex` describes how an answer is assigned to its question.
 * @throws errno errors; `createFifos` must have checked the paths
 */
export function createExchange({ requestPath, answerPath, timeoutMs, maxBytes = FRAME_BYTES, again = 0 }: ExchangeOptions): Exchange {
  const [request, answer, waiter] = [openPipe(requestPath), openPipe(answerPath, READER), createWaiter(answerPath)]
  const talk = createDuplex([request, answer], maxBytes)
  const closing = new AbortController()
  const state = { ends: 0, startsAt: 0, answered: false }
  let last: Promise<unknown> = Promise.resolve()

  async function run(text: string, signal: AbortSignal): Promise<ExchangeResult> {
    const until = performance.now() + timeoutMs
    for (let left = again; ; left -= 1) {
      const found = await attempt({ text, until, signal })
      if (found.ok || found.why !== 'died' || left === 0) return found
    }
  }

  /** A death counts only if the bridge had begun to read. It looks for the answer first, because the bridge may end after answering. */
  async function attempt({ text, until, signal }: QuestionAttempt): Promise<ExchangeResult> {
    let asking: PendingQuestion | undefined
    for (let ends = state.ends; ; ) {
      if (signal.aborted) {
        asking?.cancel()
        return ended()
      }
      asking ??= talk.ask(text, until - performance.now())
      const found = asking.poll()
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

  function ended(): ExchangeResult {
    return { ok: false, why: closing.signal.aborted ? 'closed' : 'cancelled' }
  }

  /** A cancelled question does not wait for the questions before it. */
  async function ask(text: string, signal?: AbortSignal): Promise<ExchangeResult> {
    const either = AbortSignal.any(signal === undefined ? [closing.signal] : [closing.signal, signal])
    const turn = last.then(() => run(text, either))
    last = turn.catch(() => {})
    const left = Promise.withResolvers<ExchangeResult>()
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

type QuestionAttempt = { readonly text: string; readonly until: number; readonly signal: AbortSignal }
