/** Memoizes pure reducers, so that the checker calls each only once for the same state and event. */

import type { AnyThread, Bid } from '../../kernel/thread.ts'
import { canonical } from '../../kit/json.ts'
import type { RunEvent } from '../event.ts'

type Step = (state: unknown, event: RunEvent) => unknown

/**
 * Wraps a thread with a cache. Equal states become one object, so that values derived from them recur by reference. It calls `onBlock` for
 * each state in which the thread blocks something. The cache hides an impure thread; replays of the original threads (walks.ts) reveal it.
 */
export function memoizeThread(thread: AnyThread<RunEvent>, onBlock: (name: string) => void = () => {}): AnyThread<RunEvent> {
  const bids = new Map<unknown, Bid<RunEvent>>()
  return {
    name: thread.name,
    priority: thread.priority,
    init: thread.init,
    bid(state) {
      const known = bids.get(state)
      if (known !== undefined) return known
      const bid = thread.bid(state)
      bids.set(state, bid)
      if (bid.block !== undefined && bid.block.length > 0) onBlock(thread.name)
      return bid
    },
    next: memoizeStep((state, event) => thread.next(state, event)),
  }
}

/** `step` must be pure and return plain JSON. States and events are keys by reference. Steps that share a unifier share their states. */
export function memoizeStep<S>(step: (state: S, event: RunEvent) => S, one?: Unifier): (state: S, event: RunEvent) => S
export function memoizeStep(step: Step, one = createUnifier()): Step {
  const answers = new Map<unknown, Map<RunEvent, unknown>>()
  return (state, event) => {
    const known = answers.get(state) ?? new Map<RunEvent, unknown>()
    answers.set(state, known)
    if (!known.has(event)) known.set(event, one(step(state, event)))
    return known.get(event)
  }
}

export type Unifier = (value: unknown) => unknown

/** Returns the first of all equal values. It returns a value without canonical text unchanged: the checker itself reports the problem. */
export function createUnifier(): Unifier {
  const byText = new Map<string, unknown>()
  return (value) => {
    const text = textOf(value)
    if (text === undefined) return value
    if (!byText.has(text)) byText.set(text, value)
    return byText.get(text)
  }
}

function textOf(value: unknown): string | undefined {
  try {
    return canonical(value)
  } catch {
    return undefined
  }
}
