/** Records that an agent is there again after it was not seen for a while; every other sign of life makes no event. */

import type { Command } from '../../contract/store-port.ts'
import type { PlaneContext } from '../context.ts'
import { recordEvent } from './record-event.ts'

/** The page calls an agent unseen after this. */
const unseenMs = 120_000

export type Seen = { readonly id: string; readonly role: string; readonly before: number | null }

export function* recordSeen(context: PlaneContext, { id, role, before }: Seen): Command<void> {
  if (before !== null && context.now() - before < unseenMs) return
  yield* recordEvent(context, { type: 'agent.seen', actor: `agent ${id}`, agentId: id, role })
}
