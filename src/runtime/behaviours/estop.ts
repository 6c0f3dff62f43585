/** Stops new work in a run after an emergency stop or the user's cancel. */

import type { BThread } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'
import { beginnings } from './start-events.ts'

type Stopped = { readonly stopped: boolean }

/** After `estop` it blocks think, act, apply, check and gate.open forever. It rejects a second `estop`; the first one stays in effect. */
export const estop: BThread<Stopped, RunEvent> = stopper('estop', 0)

/** Does the same for `cancel`; it rejects a second cancel. */
export const cancel: BThread<Stopped, RunEvent> = stopper('cancel', 1)

function stopper(type: 'estop' | 'cancel', priority: number): BThread<Stopped, RunEvent> {
  return {
    name: type,
    priority,
    init: { stopped: false },
    bid: ({ stopped }) => (stopped ? { block: [...beginnings, { type }] } : { wait: [{ type }] }),
    next: () => ({ stopped: true }),
  }
}
