/** A developer's thread that cannot go on, and what takes its place: the run ends, and says why. */

import type { BThread, Pattern } from '../../kernel/thread.ts'
import { beginnings } from '../behaviours/beginnings.ts'
import type { RunEvent } from '../event.ts'
import { isKnown, vocabulary } from '../vocabulary.ts'

/** What names of developers' threads begin with in the program; no thread of ours has it. */
export const USER = 'user/'

/** Asked after the gate's refusals and the limits, before questions are put to people and anything begins. */
export const USER_PRIORITY = 24

/** `thread` is its name in the program. */
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
 * Begins nothing any more, whatever the failed thread would have blocked, and asks for the end of the run. With `at`, it first lets that
 * event from outside happen and nothing else.
 */
export function standIn({ thread, message }: Pick<ThreadFailure, 'thread' | 'message'>, at?: RunEvent): BThread<Phase, RunEvent> {
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

type Phase = 'lets in' | 'wants' | 'over'
