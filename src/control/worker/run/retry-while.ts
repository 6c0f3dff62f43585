/** Repeats a request as long as the control plane cannot be reached and the answer still matters, and a refusal of the caller until it is certain. */

import { sleep } from '../../../kit/abort.ts'
import { errorText } from '../../../kit/errors.ts'
import { countRefusals, PlaneRefusal } from '../../contract/plane-refusal.ts'

export type RetryOptions = {
  /** Tells whether the answer still matters. */
  readonly while: () => boolean
  readonly random: () => number
  readonly signal?: AbortSignal
  /** Shows once why the request is repeated. */
  readonly say?: (line: string) => void
}

const firstMs = 200
const longestMs = 5_000

/** @throws the refusal of the control plane, and the last failure when the answer does not matter any more */
export async function retryWhile<T>(options: RetryOptions, ask: () => Promise<T>): Promise<T> {
  const refusals = countRefusals()
  for (let wait = firstMs; ; wait = Math.min(longestMs, wait * 2)) {
    try {
      return await ask()
    } catch (error) {
      if (refusals.isFinal(error) || !options.while()) throw error
      if (wait === firstMs) options.say?.(`${errorText(error)}; trying again`)
      await sleep(wait * (0.5 + options.random() / 2), options.signal ?? new AbortController().signal)
      if (!options.while()) throw error
    }
  }
}

/** Tells whether the answer says that this run has no lease any more. */
export function isLost(error: unknown): boolean {
  return error instanceof PlaneRefusal && ['lease_lost', 'unauthorized', 'forbidden', 'not_found'].includes(error.code)
}
