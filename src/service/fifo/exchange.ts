/** Questions to the brain or the claw and their answers, for a program that does other things meanwhile. */

import { openPipe, READER } from './pipe.ts'
import { FRAME_BYTES } from './read.ts'
import { type Answer, createTalk } from './talk.ts'
import { createWaiter } from './wait.ts'

export type Exchanged = Answer | { readonly ok: false; readonly why: 'cancelled' | 'closed' }

export type Exchange = {
  /** One at a time, in order; the time counts from when it is this question's turn. `text` ends as the wire demands. */
  ask(text: string, signal?: AbortSignal): Promise<Exchanged>
  /** A question under way is withdrawn and ends as `closed`, as does every later one. */
  close(): Promise<void>
}

export type ExchangeOptions = {
  readonly requestPath: string
  readonly answerPath: string
  readonly timeoutMs: number
  /** Of an answer. */
  readonly maxBytes?: number
}

/**
 * How an answer is known to be this question's: see `createTalk`.
 * @throws errno errors; the paths are such as `createFifos` has looked at
 */
export function createExchange({ requestPath, answerPath, timeoutMs, maxBytes = FRAME_BYTES }: ExchangeOptions): Exchange {
  const [request, answer, waiter] = [openPipe(requestPath), openPipe(answerPath, READER), createWaiter(answerPath)]
  const talk = createTalk([request, answer], maxBytes)
  const closing = new AbortController()
  let last: Promise<unknown> = Promise.resolve()

  async function run(text: string, signal: AbortSignal): Promise<Exchanged> {
    if (signal.aborted) return ended()
    const asking = talk.ask(text, timeoutMs)
    for (;;) {
      const found = asking.look()
      if (typeof found !== 'number') return found
      await waiter.wait(found, signal)
      if (signal.aborted) {
        asking.cancel()
        return ended()
      }
    }
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

  return { ask, close }
}
