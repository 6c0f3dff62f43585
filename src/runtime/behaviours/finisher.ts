/** Ends a run with exactly one `finish`, when nothing is in flight, with the code of its true outcome, and blocks every later event. */

import type { BThread } from '../../kernel/thread.ts'
import type { Ending, FailureCode, Progress, RunEvent } from '../event.ts'
import { isKnown, vocabulary } from '../vocabulary.ts'
import { isProof } from './proof-of-done.ts'
import { broughtBy } from './start-events.ts'
import { progressAfter } from './wiggum/progress.ts'

type Finisher = {
  /** The model thinks, the gate judges, or a check runs. */
  readonly thinking: boolean
  readonly unresolved: number
  readonly ending: Ending | null
  /** The last refusal that no allowed call has followed; an answer after it does not count as plain success. */
  readonly refused: Pick<Ending, 'code' | 'message'> | null
  readonly finished: boolean
  /** Set in a wiggum run: it answers when its checks passed, whatever was refused on the way. */
  readonly wiggum: Progress | null
}

function everything(): readonly { readonly type: RunEvent['type'] }[] {
  const all: { readonly type: RunEvent['type'] }[] = []
  for (const type in vocabulary) if (isKnown(type)) all.push({ type })
  return all
}

export const finisher: BThread<Finisher, RunEvent> = {
  name: 'finisher',
  priority: 70,
  init: { thinking: false, unresolved: 0, ending: null, refused: null, finished: false, wiggum: null },
  bid({ thinking, unresolved, ending, finished }) {
    if (finished) return { block: everything() }
    return {
      wait: [
        { type: 'run.start' },
        { type: 'think' },
        { type: 'model.done' },
        { type: 'model.fail' },
        { type: 'judge' },
        { type: 'judged' },
        { type: 'tool.done' },
        { type: 'deny' },
        { type: 'drop' },
        { type: 'check' },
        { type: 'check.done' },
        { type: 'retry' },
        { type: 'stalled' },
      ],
      interrupt: [{ type: 'cancel' }, { type: 'estop' }, { type: 'halt' }],
      request: ending && !thinking && unresolved === 0 ? [{ type: 'finish', ending }] : [],
    }
  },
  next(before, event) {
    const state = { ...before, wiggum: progressAfter(before.wiggum, event) }
    switch (event.type) {
      case 'run.start':
        return { ...state, unresolved: broughtBy(event)?.length ?? 0 }
      case 'think':
        return { ...state, thinking: true }
      case 'check':
        return { ...(isProof(event) ? withoutAnswer(state) : state), thinking: true }
      case 'model.done':
        return answered({ ...state, thinking: false, unresolved: event.proposals.length })
      // A thread that requests a call after the answer makes the run continue.
      case 'judge':
        return { ...withoutAnswer(state), thinking: true }
      case 'judged':
        return { ...state, thinking: false, unresolved: event.proposals.length }
      case 'model.fail':
        if (state.wiggum?.stage === 'checking') return { ...state, thinking: false }
        return end({ ...state, thinking: false }, failure(event))
      case 'check.done':
        return isProof(event) && event.pass ? answered({ ...state, thinking: false }) : checked({ ...state, thinking: false })
      case 'tool.done':
        return { ...state, unresolved: state.unresolved - 1, refused: afterTool(state, event) }
      case 'deny':
      case 'drop':
        return {
          ...state,
          unresolved: state.unresolved - 1,
          refused: { code: refusalCode(event.by), message: `${event.call.name || '(no name)'}: ${event.reason}` },
        }
      case 'cancel':
        return end(state, { stop: 'cancelled', code: 'cancelled', message: `cancelled by ${event.by}` })
      case 'estop':
        return end(state, { stop: 'cancelled', code: 'estop', message: event.reason })
      case 'halt':
        return end(withoutAnswer(state), { stop: 'error', code: event.code, message: event.message })
      case 'stalled':
        return end(state, { stop: 'error', code: 'stalled', message: 'nothing is in flight and nothing may happen' })
      case 'finish':
        return { ...state, finished: true }
      default:
        return state
    }
  },
}

/** An answer does not end the run if more work was requested after it. */
function withoutAnswer(state: Finisher): Finisher {
  return state.ending?.stop === 'end_turn' ? { ...state, ending: null } : state
}

/** The first ending stays in effect: a provider that fails because of a cancel does not turn the cancel into a failure. */
function end(state: Finisher, ending: Ending): Finisher {
  return state.ending ? state : { ...state, ending }
}

function answered(state: Finisher): Finisher {
  if (state.unresolved > 0 || state.wiggum) return state
  return end(state, { stop: 'end_turn', ...(state.refused ?? { code: 'answered', message: '' }) })
}

function checked(state: Finisher): Finisher {
  return state.wiggum?.stage === 'passed' ? end(state, { stop: 'end_turn', code: 'answered', message: '' }) : state
}

function afterTool({ refused }: Finisher, { outcome }: Extract<RunEvent, { type: 'tool.done' }>): Finisher['refused'] {
  if (outcome.status === 'allowed') return null
  return outcome.status === 'denied' ? { code: 'denied', message: outcome.error ?? 'a tool was refused' } : refused
}

function refusalCode(by: string): Ending['code'] {
  if (by === 'approval.nobody' || by === 'approval.expiry') return 'approval_needed'
  return by === 'estop' ? 'estop' : 'denied'
}

const timeouts: readonly FailureCode[] = ['timeout']

function failure({ code, message }: Extract<RunEvent, { type: 'model.fail' }>): Ending {
  if (code === 'aborted') return { stop: 'cancelled', code: 'cancelled', message }
  if (code === 'budget') return { stop: 'error', code, message }
  return { stop: 'error', code: timeouts.includes(code) ? 'timeout' : 'provider', message }
}
