/** Why something was not done, in one word and in sentences. Only an entrance knows what number or status that is. */

import type { Ending } from '../runtime/event.ts'

/** The words of a run's ending, and the one that ends it before it begins. */
export type FailureCode = Exclude<Ending['code'], 'answered'> | 'usage'

/** `problems`: what, why and what to do; without "error: ", one a problem. `message` has them a line each. */
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

/** Altered content is an integrity matter; a disk that is full or closed to us is not. */
export function storageProblem({ code, message }: { readonly code: string; readonly message: string }): FailureError {
  return new FailureError(code === 'corrupt' ? 'integrity' : 'error', message)
}
