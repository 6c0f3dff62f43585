/** Defines the threads of wiggum mode: which mode a run is in, the loop until its checks pass, and what ends a run that would not end. */

import type { BThread } from '../../../kernel/thread.ts'
import { canonical } from '../../../kit/json.ts'
import type { Mode, Progress, RunEvent } from '../../event.ts'
import { beginnings } from '../start-events.ts'
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

/** Decides which mode a run is in: wiggum mode needs checks that end it, and a run keeps the mode that it began with. */
export const modes: BThread<{ readonly mode: Mode }, RunEvent> = {
  name: 'modes',
  priority: 5,
  init: { mode: 'structured' },
  bid: ({ mode }) => ({
    wait: [{ type: 'run.start' }],
    block: [
      { type: 'mode.set', match: (event) => event.type === 'mode.set' && event.mode !== mode },
      { type: 'run.start', match: (event) => event.type === 'run.start' && (event.mode === 'wiggum') !== hasChecks(event) },
    ],
  }),
  next: (state, event) => (event.type === 'run.start' ? { mode: event.mode } : state),
}

const hasChecks = ({ wiggum }: Extract<RunEvent, { type: 'run.start' }>) => wiggum !== undefined && wiggum.checks.length > 0

type Halt = Pick<Extract<RunEvent, { type: 'halt' }>, 'code' | 'message'>
type Guard = { readonly progress: Progress | null; readonly wants: Halt | null; readonly over: boolean }

/** Ends a wiggum run that would not end: at its limit, when it gets nowhere, when its time is over, or when its checks are others. */
export const wiggumGuard: BThread<Guard, RunEvent> = {
  name: 'wiggum-guard',
  priority: 23,
  init: { progress: null, wants: null, over: false },
  bid: ({ wants, over }) => ({
    wait: [...followed, { type: 'clock' }],
    interrupt: [{ type: 'halt' }],
    block: wants || over ? [...beginnings, { type: 'retry' }] : [],
    request: wants ? [{ type: 'halt', ...wants }] : [],
  }),
  next(state, event) {
    if (event.type === 'halt') return { ...state, wants: null, over: state.progress !== null }
    const progress = progressAfter(state.progress, event)
    return { ...state, progress, wants: state.wants ?? (state.over || progress === null ? null : reasonToHalt(progress, event)) }
  },
}

function reasonToHalt({ limits, stage, same, iteration, evidence }: Progress, event: RunEvent): Halt | null {
  const { until, maxSame, maxIterations } = limits
  if ((event.type === 'run.start' || event.type === 'clock') && until !== undefined && event.at >= until)
    return limit(`the time for the run was over at ${new Date(until).toISOString()}, and its checks do not pass`)
  if (event.type === 'run.start' && haveChanged(event))
    return { code: 'checks_failed', message: 'the checks are not those that the interrupted run began with; begin a new run' }
  if (event.type !== 'run.start' && event.type !== 'check.done') return null
  if (stage === 'unusable') return { code: 'checks_failed', message: `a check could not be run: ${evidence}` }
  const what = evidence.split('\n', 1)[0]
  if (stage === 'failed' && same.times >= maxSame)
    return limit(`the run gets nowhere: files and failure were the same ${same.times} times in a row. ${what}`)
  if (stage === 'failed' ? iteration < maxIterations : iteration <= maxIterations) return null
  return limit(`the limit of ${maxIterations} iterations is reached, and the checks do not pass. ${what}`)
}

const limit = (message: string): Halt => ({ code: 'limit', message: message.trim() })

function haveChanged({ wiggum, continues }: Extract<RunEvent, { type: 'run.start' }>): boolean {
  const before = continues?.wiggum?.limits.checks
  return before !== undefined && canonical(before) !== canonical(wiggum?.checks ?? [])
}
