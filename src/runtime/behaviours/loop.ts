/** The loop itself: a start, a finished round or a retry asks for the next thought. */

import type { BThread } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'

type Loop = { readonly round: number; readonly wants: boolean }

export const loop: BThread<Loop, RunEvent> = {
  name: 'loop',
  priority: 60,
  init: { round: 0, wants: false },
  bid: ({ round, wants }) =>
    wants ? { request: [{ type: 'think', round: round + 1 }] } : { wait: [{ type: 'run.start' }, { type: 'observe' }, { type: 'retry' }] },
  next: ({ round }, event) => (event.type === 'think' ? { round: event.round, wants: false } : { round, wants: true }),
}
