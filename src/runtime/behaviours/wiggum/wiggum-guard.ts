/** Ends a wiggum run that would not end: at its limit, when it gets nowhere, when its time is over, or when its checks are others. */

import type { BThread } from '../../../kernel/thread.ts'
import { canonical } from '../../../kit/json.ts'
import type { Progress, RunEvent } from '../../event.ts'
import { beginnings } from '../start-events.ts'
import { followed, progressAfter } from './progress.ts'

type Halt = Pick<Extract<RunEvent, { type: 'halt' }>, 'code' | 'message'>
type Guard = { readonly progress: Progress | null; readonly wants: Halt | null; readonly over: boolean }

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
