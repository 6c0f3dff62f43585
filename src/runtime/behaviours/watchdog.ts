/** Ends a run that would hang: nothing is in flight, nobody owes an answer and nothing is enabled. */

import type { BThread } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'
import { beginnings } from './start-events.ts'

type Watch = {
  readonly started: boolean
  readonly thinking: boolean
  readonly inFlight: number
  readonly gates: readonly string[]
  readonly over: boolean
}

const watched = (
  [
    'run.start',
    'think',
    'judge',
    'model.done',
    'model.fail',
    'judged',
    'act',
    'tool.done',
    'tool.changed',
    'apply',
    'gate.open',
    'approval.decision',
    'deny',
    'drop',
    'check',
    'check.done',
    'finish',
  ] as const
).map((type) => ({ type }))

/** It has the lowest priority, so the engine selects its request only when no other is enabled. After that nothing new starts. */
export const watchdog: BThread<Watch, RunEvent> = {
  name: 'watchdog',
  priority: 95,
  init: { started: false, thinking: false, inFlight: 0, gates: [], over: false },
  bid: ({ started, thinking, inFlight, gates, over }) => ({
    wait: watched,
    block: over ? beginnings : [],
    request: started && !over && !thinking && inFlight === 0 && gates.length === 0 ? [{ type: 'stalled' }] : [],
  }),
  next(state, event) {
    switch (event.type) {
      case 'run.start':
        return { ...state, started: true }
      case 'think':
      case 'judge':
      case 'check':
        return { ...state, thinking: true }
      case 'model.done':
      case 'model.fail':
      case 'judged':
      case 'check.done':
        return { ...state, thinking: false }
      case 'act':
      case 'apply':
        return { ...state, inFlight: state.inFlight + 1 }
      case 'tool.done':
      case 'tool.changed':
        return { ...state, inFlight: state.inFlight - 1 }
      case 'gate.open':
        return { ...state, gates: [...state.gates, event.id] }
      case 'approval.decision':
      case 'deny':
      case 'drop':
        return { ...state, gates: state.gates.filter((id) => id !== event.id) }
      case 'stalled':
      case 'finish':
        return { ...state, over: true }
      default:
        return state
    }
  },
}
