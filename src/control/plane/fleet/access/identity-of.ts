/** Answers who a caller is, and at which control plane: an id that is made once, and stays when its address or its engine changes. */

import type { Caller } from '../../../contract/caller.ts'
import type { Identity } from '../../../contract/fleet-shapes.ts'
import { PlaneRefusal } from '../../../contract/plane-refusal.ts'
import type { Command } from '../../../contract/store-port.ts'
import type { PlaneContext } from '../../context.ts'
import { first, text } from '../../row.ts'

/** @throws PlaneRefusal forbidden for the shared secret, which is nobody's own */
export async function identityOf(context: PlaneContext, caller: Caller): Promise<Identity> {
  const { kind, id } = caller
  if (kind === 'seed') throw new PlaneRefusal('forbidden', 'the shared secret is no credential of an agent or an operator')
  const role = caller.kind === 'agent' || caller.kind === 'run' ? caller.role : null
  return { kind, id, role, control_plane: await planeId(context) }
}

/** Part of paths on the machines of workers, so it is short. */
async function planeId({ store, randomBytes }: PlaneContext): Promise<string> {
  const known = await store.read(readPlaneId)
  if (known !== undefined) return known
  const made = Buffer.from(randomBytes(8)).toString('hex')
  return await store.write(() => keepPlaneId(made))
}

function* readPlaneId(): Command<string | undefined> {
  const row = yield* first("SELECT value FROM settings WHERE name = 'plane_id'")
  return row && text(row, 'value')
}

/** Two daemons may make one at the same time: the first one stays. */
function* keepPlaneId(made: string): Command<string> {
  yield ["INSERT INTO settings (name, value) VALUES ('plane_id', ?) ON CONFLICT (name) DO NOTHING", [made]]
  return (yield* readPlaneId()) ?? made
}
