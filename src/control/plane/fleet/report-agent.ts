/** Notes what a worker says of itself. */

import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command } from '../../contract/store-port.ts'
import type { PlaneContext } from '../context.ts'
import { recordEvent } from '../events/record-event.ts'
import { first, intOrNull, text } from '../row.ts'
import { noAgent } from './agent-row.ts'

const mostCharacters = 65_536
/** The page calls an agent unseen after this. */
const unseenMs = 120_000

export type Report = {
  readonly id: string
  readonly worker: Readonly<Record<string, unknown>>
  /** Without them the last ones stay. */
  readonly receipts?: Readonly<Record<string, unknown>> | undefined
}

/** Makes no event while it was seen a moment ago: workers report all the time. @throws PlaneRefusal not_found, too_large */
export function* reportAgent(context: PlaneContext, { id, worker, receipts }: Report): Command<void> {
  const known = yield* first('SELECT role, last_seen_at FROM agents WHERE id = ?', [id])
  if (!known) throw noAgent(id)
  yield [
    'UPDATE agents SET last_seen_at = ?, worker = ?, receipts = COALESCE(?, receipts) WHERE id = ?',
    [context.now(), jsonOf('worker', worker), receipts === undefined ? null : jsonOf('receipts', receipts), id],
  ]
  const before = intOrNull(known, 'last_seen_at')
  if (before !== null && context.now() - before < unseenMs) return
  yield* recordEvent(context, { type: 'agent.seen', actor: `agent ${id}`, agentId: id, role: text(known, 'role') })
}

function jsonOf(name: string, value: object): string {
  const json = JSON.stringify(value)
  if (json.length > mostCharacters)
    throw new PlaneRefusal('too_large', `"${name}" of a report has at most 64 KiB; this one has ${json.length} characters`)
  return json
}
