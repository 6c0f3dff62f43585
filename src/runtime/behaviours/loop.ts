/**
 * Runs the model loop: a start, a finished round or a retry requests the next `think`; it rejects a reply to no request. The calls that a
 * start brings are a round.
 */

import type { BThread, Pattern } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'
import { broughtBy } from './start-events.ts'

const start: Pattern<RunEvent> = { type: 'run.start' }
const replies: readonly Pattern<RunEvent>[] = [{ type: 'model.done' }, { type: 'model.fail' }]
/** The events that only a request under way brings about. */
const answers: readonly Pattern<RunEvent>[] = [...replies, { type: 'context.trimmed' }]
/** Accepted only between a reply and the next request, so that the journal tells which request has it. */
const steer: Pattern<RunEvent> = { type: 'steer' }

export const loop: BThread<{ readonly round: number; readonly phase: 'new' | 'idle' | 'wants' | 'thinking' }, RunEvent> = {
  name: 'loop',
  priority: 60,
  init: { round: 0, phase: 'new' },
  bid({ round, phase }) {
    if (phase === 'new') return { wait: [start], block: [steer, ...answers] }
    if (phase === 'idle') return { wait: [{ type: 'observe' }, { type: 'retry' }], block: [start, ...answers] }
    if (phase === 'wants') return { request: [{ type: 'think', round: round + 1 }], block: [start, steer, ...answers] }
    return { wait: replies, block: [start, steer] }
  },
  next({ round }, event) {
    if (event.type === 'think') return { round: event.round, phase: 'thinking' }
    const waits = event.type === 'run.start' && ((broughtBy(event) ?? []).length > 0 || awaitsChecks(event))
    return { round, phase: waits || event.type === 'model.done' || event.type === 'model.fail' ? 'idle' : 'wants' }
  },
}

/** The interrupted run had its reply; what follows is up to the checks. */
function awaitsChecks({ continues }: Extract<RunEvent, { type: 'run.start' }>): boolean {
  return continues?.wiggum !== undefined && continues.wiggum.stage !== 'working'
}
