/** Keeps what a run delivers: its manifest, what became of its changes, and the skill that it used. */

import { signatureOf } from '../../contract/caller.ts'
import type { RunPlane } from '../../contract/plane.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Run } from '../../contract/run-shapes.ts'
import type { Command } from '../../contract/store-port.ts'
import type { PlaneContext } from '../context.ts'
import { recordEvent } from '../events/record-event.ts'
import { int, text } from '../row.ts'
import { type Access, lockRun, readRun } from './run-row.ts'

export type Delivery = Parameters<RunPlane['deliver']>[2]

const mostManifestCharacters = 262_144

/** What is not given stays. @throws PlaneRefusal not_found, forbidden, lease_lost, too_large */
export function* deliverRun(context: PlaneContext, { delivery, ...access }: Access & { readonly delivery: Delivery }): Command<Run> {
  const row = yield* lockRun(context, access)
  const { manifest, changes, skill } = delivery
  const written = manifest === undefined ? null : JSON.stringify(manifest)
  if (written !== null && written.length > mostManifestCharacters)
    throw new PlaneRefusal('too_large', `a manifest has at most 256 KiB; this one has ${written.length} characters`)
  yield [
    'UPDATE runs SET manifest = COALESCE(?, manifest), changes = COALESCE(?, changes), skill = COALESCE(?, skill) WHERE id = ?',
    [written, changes ?? null, skill ?? null, int(row, 'id')],
  ]
  yield* recordEvent(context, {
    ...{ type: 'run.delivered', actor: signatureOf(access.caller), taskId: int(row, 'task_id'), runId: int(row, 'id') },
    ...{ agentId: text(row, 'agent_id'), role: text(row, 'role') },
    data: { manifest: manifest !== undefined, ...(changes ? { changes } : {}), ...(skill ? { skill } : {}) },
  })
  return yield* readRun(access.id)
}
