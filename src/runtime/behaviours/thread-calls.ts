/** Decides when developers' threads may add calls and events to a run: their call is a round of its own, between the model's rounds. */

import type { BThread, Pattern } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'
import { broughtBy } from './start-events.ts'

/**
 * `busy`: the model thinks, its calls are open, or a check runs. `asked`: the gate judges a thread's call. `own`: that call is open. `over`: no more
 * calls.
 */
type ThreadCalls = { readonly phase: 'new' | 'idle' | 'busy' | 'asked' | 'own' | 'over'; readonly id: string | null }

const wait = (['run.start', 'think', 'model.done', 'model.fail', 'judge', 'judged', 'observe', 'check', 'check.done'] as const).map(
  (type) => ({ type }),
)

export const threadCalls: BThread<ThreadCalls, RunEvent> = {
  name: 'thread-calls',
  priority: 32,
  init: { phase: 'new', id: null },
  bid: ({ phase, id }) => ({ wait, block: blocks(phase, id) }),
  next(state, event) {
    if (event.type === 'judge') return { phase: 'asked', id: event.id }
    if (event.type === 'judged') return { phase: 'own', id: null }
    if (event.type === 'model.fail') return { phase: 'over', id: null }
    if (event.type === 'think' || event.type === 'check') return { phase: 'busy', id: null }
    if (event.type === 'run.start' && (broughtBy(event) ?? []).length > 0) return { phase: 'busy', id: null }
    if (event.type === 'model.done' && event.proposals.length > 0) return state
    return { phase: 'idle', id: null }
  },
}

/** Rejects a judgement that no thread requested; while a thread's call is open the model waits. */
function blocks(phase: ThreadCalls['phase'], id: ThreadCalls['id']): Pattern<RunEvent>[] {
  if (phase === 'idle') return [{ type: 'judged' }]
  if (phase === 'asked')
    return [{ type: 'judge' }, { type: 'think' }, { type: 'judged', match: (event) => event.type === 'judged' && event.id !== id }]
  const closed: Pattern<RunEvent>[] = [{ type: 'judge' }, { type: 'judged' }]
  if (phase === 'new') return [...closed, { type: 'user' }]
  return phase === 'own' ? [...closed, { type: 'think' }] : closed
}
