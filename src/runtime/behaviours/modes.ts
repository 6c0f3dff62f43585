/** Decides which mode a run is in. Wiggum mode needs executed checks and a sandbox; until both exist it rejects a request for that mode. */

import type { BThread } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'

export const modes: BThread<null, RunEvent> = {
  name: 'modes',
  priority: 5,
  init: null,
  bid: () => ({ block: [{ type: 'mode.set', match: (event) => event.type === 'mode.set' && event.mode === 'wiggum' }] }),
  next: (state) => state,
}
