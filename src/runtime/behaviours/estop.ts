/** The emergency stop, and the user's cancel: once seen, nothing new begins in this run. */

import type { BThread } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'
import { beginnings } from './beginnings.ts'

type Stopped = { readonly stopped: boolean }

/** After `estop`: no think, act, check or gate.open for ever. A second `estop` is rejected, the first one stands. */
export const estop: BThread<Stopped, RunEvent> = stopper('estop', 0)

/** The same for `cancel`; a late second cancel is rejected by name. */
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
