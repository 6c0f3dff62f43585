/** Nothing in flight, nobody to wait for and nothing enabled: the run says so and ends instead of hanging. */

import type { BThread } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'
import { beginnings } from './beginnings.ts'

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
    'gate.open',
    'approval.decision',
    'deny',
    'finish',
  ] as const
).map((type) => ({ type }))

/** Asked last of all, so its request is selected only when no other is enabled. Once it was, nothing new begins. */
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
        return { ...state, thinking: true }
      case 'model.done':
      case 'model.fail':
      case 'judged':
        return { ...state, thinking: false }
      case 'act':
        return { ...state, inFlight: state.inFlight + 1 }
      case 'tool.done':
        return { ...state, inFlight: state.inFlight - 1 }
      case 'gate.open':
        return { ...state, gates: [...state.gates, event.id] }
      case 'approval.decision':
      case 'deny':
        return { ...state, gates: state.gates.filter((id) => id !== event.id) }
      case 'stalled':
      case 'finish':
        return { ...state, over: true }
      default:
        return state
    }
  },
}
