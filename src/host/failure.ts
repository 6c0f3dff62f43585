/** Describes why an operation failed, as one code and as sentences. Only an entrance translates the code to an exit code or status. */

import type { Ending } from '../runtime/event.ts'

/** The codes of a run's ending, and `usage` for a request that fails before a run begins. */
export type FailureCode = Exclude<Ending['code'], 'answered'> | 'usage'

/** `problems`: what, why and what to do; one entry per problem, without "error: ". `message` has one line per problem. */
export class FailureError extends Error {
  readonly problems: readonly string[]

  constructor(
    readonly code: FailureCode,
    problems: string | readonly string[],
  ) {
    const all = typeof problems === 'string' ? [problems] : problems
    super(all.join('\n'))
    this.problems = all
  }
}

/** Returns the failure with which the work ends. @throws every other error of the work */
export function orFailure<T>(work: () => T): T | FailureError {
  try {
    return work()
  } catch (error) {
    if (error instanceof FailureError) return error
    throw error
  }
}

/** Altered content is an integrity failure; a full or unreadable disk is not. */
export function storageProblem({ code, message }: { readonly code: string; readonly message: string }): FailureError {
  return new FailureError(code === 'corrupt' ? 'integrity' : 'error', message)
}
