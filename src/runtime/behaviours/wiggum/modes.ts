/** Decides which mode a run is in: wiggum mode needs checks that end it, and a run keeps the mode that it began with. */

import type { BThread } from '../../../kernel/thread.ts'
import type { Mode, RunEvent } from '../../event.ts'

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
