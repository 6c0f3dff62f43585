/** Repeats a question to the control plane as long as it cannot be reached and the answer still matters. */

import { sleep } from '../../../kit/abort.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'

export type Asking = {
  /** Whether the answer still matters. */
  readonly while: () => boolean
  readonly random: () => number
  readonly signal?: AbortSignal
}

const firstMs = 200
const longestMs = 5_000

/** @throws what the control plane refuses, and the last failure when the answer does not matter any more */
export async function persistently<T>(asking: Asking, ask: () => Promise<T>): Promise<T> {
  for (let wait = firstMs; ; wait = Math.min(longestMs, wait * 2)) {
    try {
      return await ask()
    } catch (error) {
      if (!isPassing(error) || !asking.while()) throw error
      await sleep(wait * (0.5 + asking.random() / 2), asking.signal ?? new AbortController().signal)
      if (!asking.while()) throw error
    }
  }
}

/** A connection that failed, or a control plane that is busy or restarting. */
export function isPassing(error: unknown): boolean {
  return !(error instanceof PlaneRefusal) || error.code === 'unavailable' || error.code === 'too_many'
}

/** Whether the answer says that this run has no lease any more. */
export function isLost(error: unknown): boolean {
  return error instanceof PlaneRefusal && ['lease_lost', 'unauthorized', 'forbidden', 'not_found'].includes(error.code)
}
