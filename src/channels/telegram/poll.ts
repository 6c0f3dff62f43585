/** Asks Telegram for updates, one long request after the other, and waits longer after each failure in a row. */

import { FailureError } from '../../host/failure.ts'
import { isObject } from '../../kit/json.ts'
import type { Waiting } from '../outbox/send-pieces.ts'
import type { Asking, BotApi } from './bot-api.ts'
import { refusalOf } from './refusal.ts'

export type Polling = Waiting & { readonly api: BotApi }

/** How long Telegram may hold a request that has nothing to tell, in seconds. */
const HOLD_S = 30

/** @returns milliseconds: 1, 2, 4 … and from then on 60 s */
export function pauseMs(failures: number): number {
  return Math.min(60_000, 1_000 * 2 ** Math.min(failures, 10))
}

/**
 * Calls until there is an answer, however long Telegram is out of reach: one line in the log when that begins, and one when it ends.
 * @returns undefined when the signal aborted @throws FailureError `error` when a person has to change something
 */
export function createPatience({ api, sleep, log, signal }: Polling) {
  const trouble = { failures: 0 }
  return async (method: string, params: object, asking: Omit<Asking, 'signal'> = {}): Promise<unknown> => {
    while (!signal.aborted) {
      try {
        const result = await api.call(method, params, { ...asking, signal })
        if (trouble.failures > 0) log('info', 'telegram reached again', { failures: trouble.failures })
        trouble.failures = 0
        return result
      } catch (error) {
        if (signal.aborted) return undefined
        const refusal = refusalOf(error, method)
        if (refusal.kind === 'final') throw new FailureError('error', `${refusal.message}`)
        if (trouble.failures === 0) log('warn', 'telegram out of reach', { why: refusal.message, next: 'asked again until it answers' })
        const waitMs = refusal.kind === 'wait' ? refusal.ms : pauseMs(trouble.failures)
        trouble.failures += 1
        await sleep(waitMs, signal).catch(() => {})
      }
    }
    return undefined
  }
}

export type Updates = {
  readonly ask: ReturnType<typeof createPatience>
  readonly signal: AbortSignal
  readonly offset: () => number | undefined
  /** Gets the updates in order; they are forgotten there when it has returned. */
  readonly take: (updates: readonly unknown[], next: number) => void
  /** Resolves when more messages may come. */
  readonly room: () => Promise<void>
}

/** Resolves when the signal aborts. @throws as `createPatience` */
export async function readUpdates({ ask, signal, offset, take, room }: Updates): Promise<void> {
  while (!signal.aborted) {
    await room()
    const from = offset()
    const params = { ...(from === undefined ? {} : { offset: from }), limit: 100, timeout: HOLD_S, allowed_updates: ['message'] }
    const found = await ask('getUpdates', params, { timeoutMs: (HOLD_S + 10) * 1000 })
    const updates = Array.isArray(found) ? found : []
    const ids = updates.flatMap((update) => (isObject(update) && typeof update.update_id === 'number' ? [update.update_id] : []))
    if (ids.length > 0) take(updates, Math.max(...ids) + 1)
  }
}
