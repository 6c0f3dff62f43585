/**
 * Repeats a wiggum run until its checks pass: after a reply without calls it runs them in their order, and when one fails the model gets the
 * evidence and works on.
 */

import type { BThread } from '../../../kernel/thread.ts'
import type { Progress, RunEvent } from '../../event.ts'
import { followed, progressAfter } from './progress.ts'

/** `running`: the id of the check in flight. `begun` counts checks. `over`: the run was stopped, and nothing is checked or tried again. */
type Loop = { readonly progress: Progress | null; readonly running: string | null; readonly begun: number; readonly over: boolean }

/** It rejects a result of a check that is not in flight. No thread adds a call while a check runs or its evidence waits for the model. */
export const wiggumLoop: BThread<Loop, RunEvent> = {
  name: 'wiggum-loop',
  priority: 61,
  init: { progress: null, running: null, begun: 0, over: false },
  bid: (state) => ({
    // Another thread may ask for a check as well.
    wait: [...followed, { type: 'check' }],
    interrupt: [{ type: 'cancel' }, { type: 'estop' }, { type: 'halt' }, { type: 'stalled' }],
    block: [
      { type: 'check.done', match: (event) => event.type === 'check.done' && event.id !== state.running },
      ...(state.running !== null || state.progress?.stage === 'failed' ? [{ type: 'judge' } as const] : []),
    ],
    request: nextEvents(state),
  }),
  next(state, event) {
    const progress = progressAfter(state.progress, event)
    if (event.type === 'check') return { ...state, running: event.id, begun: state.begun + 1 }
    if (event.type === 'check.done') return { ...state, progress, running: null }
    if (followed.some(({ type }) => type === event.type)) return { ...state, progress }
    return { ...state, over: true }
  },
}

function nextEvents({ progress, running, begun, over }: Loop): RunEvent[] {
  if (progress === null || over || running !== null) return []
  if (progress.stage === 'failed') return [{ type: 'retry', evidence: retryText(progress) }]
  const check = progress.stage === 'checking' ? progress.limits.checks[progress.passed] : undefined
  if (check === undefined) return []
  return [{ type: 'check', id: `check-${begun + 1}`, name: check.name, tier: check.tier, iteration: progress.iteration }]
}

function retryText({ iteration, evidence }: Progress): string {
  return `[BraidClaw: iteration ${iteration} is over and the work is not done. Mend what the check found, not the check; it runs again when you answer without a call.]\n${evidence}`
}
