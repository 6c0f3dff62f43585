/** Reports the failure of a developer's thread, and replaces that thread in the run. */

import type { BThread, Pattern } from '../../kernel/thread.ts'
import { beginnings } from '../behaviours/start-events.ts'
import type { RunEvent } from '../event.ts'
import { isKnown, vocabulary } from '../vocabulary.ts'

/** The prefix of developers' threads in the program; none of our own threads has it. */
export const USER = 'user/'

/** The engine asks these threads after the gate's refusals and the limits, and before gates open and effects start. */
export const USER_PRIORITY = 24

/** Reports that a developer's thread failed. `thread` is its name in the program. */
export class ThreadFailure extends Error {
  override readonly name = 'ThreadFailure'
  constructor(
    readonly thread: string,
    readonly why: string,
  ) {
    super(`thread "${thread}" ${why}`)
  }
}

/**
 * Returns the stand-in for a failed thread: it blocks everything new, whatever the failed thread would have blocked, and requests the end
 * of the run. With `at`, it first lets only that external event happen.
 */
export function standIn({ thread, message }: Pick<ThreadFailure, 'thread' | 'message'>, at?: RunEvent): BThread<StandInPhase, RunEvent> {
  const others: Pattern<RunEvent>[] = []
  for (const type in vocabulary) if (isKnown(type) && type !== at?.type) others.push({ type })
  return {
    name: thread,
    priority: USER_PRIORITY,
    init: at === undefined ? 'wants' : 'lets in',
    bid(phase) {
      if (phase === 'lets in' && at !== undefined) return { wait: [{ type: at.type }], block: others }
      return { block: [...beginnings, { type: 'user' }], request: phase === 'wants' ? [{ type: 'halt', code: 'error', message }] : [] }
    },
    next: (phase) => (phase === 'lets in' ? 'wants' : 'over'),
  }
}

type StandInPhase = 'lets in' | 'wants' | 'over'
