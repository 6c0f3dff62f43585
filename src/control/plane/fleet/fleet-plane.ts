/** Serves the fleet: its agents and their keys. */

import { type Caller, signatureOf } from '../../contract/caller.ts'
import type { Agent } from '../../contract/fleet-shapes.ts'
import type { FleetPlane } from '../../contract/plane.ts'
import { assertSelf, onlyOperator } from '../../contract/rights.ts'
import type { Command } from '../../contract/store-port.ts'
import type { PlaneContext } from '../context.ts'
import { objectOrNull, text, timeOrNull } from '../row.ts'
import { addKey, listKeys, revokeKey, rotateKey } from './agent-keys.ts'
import { readAgent, readAgents } from './agent-row.ts'
import { addAgent, editAgent, pauseAgent, removeAgent, resumeAgent, wakeAgent } from './change-agent.ts'
import { reportAgent } from './report-agent.ts'

export function createFleetPlane(context: PlaneContext): FleetPlane {
  const { store } = context

  /** Runs a change and answers the agent afterwards, in one transaction. */
  const changed = async (id: string, change: () => Command<void>): Promise<Agent> =>
    await store.write(function* (): Command<Agent> {
      yield* change()
      return yield* readAgent(context, id)
    })
  const actorOf = (caller: Caller, what: string) => signatureOf(onlyOperator(caller, what))

  return {
    async list(caller) {
      onlyOperator(caller, 'list agents')
      return await store.read(() => readAgents(context))
    },
    async get(caller, id) {
      assertSelf(caller, id, 'read it')
      return await store.read(() => readAgent(context, id))
    },
    async add(caller, draft) {
      const actor = actorOf(caller, 'add agents')
      return await changed(draft.id, () => addAgent(context, { draft, actor }))
    },
    async edit(caller, id, patch) {
      const actor = actorOf(caller, 'edit agents')
      return await changed(id, () => editAgent(context, { actor, id, patch }))
    },
    async remove(caller, id) {
      const actor = actorOf(caller, 'remove agents')
      await store.write(() => removeAgent(context, { actor, id }))
    },
    async pause(caller, id, reason) {
      const actor = actorOf(caller, 'pause agents')
      return await changed(id, () => pauseAgent(context, { actor, id, reason }))
    },
    async resume(caller, id) {
      const actor = actorOf(caller, 'resume agents')
      return await changed(id, () => resumeAgent(context, { actor, id }))
    },
    async wake(caller, id) {
      const actor = actorOf(caller, 'wake agents')
      return await changed(id, () => wakeAgent(context, { actor, id }))
    },
    async report(caller, id, worker, receipts) {
      assertSelf(caller, id, 'report')
      return await changed(id, () => reportAgent(context, { id, worker, receipts }))
    },
    async keys(caller, id) {
      onlyOperator(caller, 'list keys')
      return await store.read(() => listKeys(id))
    },
    async newKey(caller, id) {
      const actor = actorOf(caller, 'make keys')
      return await store.write(() => addKey(context, { actor, id }))
    },
    async revokeKey(caller, id, keyId) {
      const actor = actorOf(caller, 'revoke keys')
      return await store.write(() => revokeKey(context, { actor, id, keyId }))
    },
    async rotateKey(caller, id) {
      const actor = actorOf(caller, 'rotate keys')
      return await store.write(() => rotateKey(context, { actor, id }))
    },
    async receipts(caller) {
      onlyOperator(caller, 'read the state of receipts')
      return await store.read(readReceipts)
    },
  }
}

type Receipts = Awaited<ReturnType<FleetPlane['receipts']>>

function* readReceipts(): Command<Receipts> {
  const rows = yield ['SELECT id, receipts, last_seen_at FROM agents ORDER BY place']
  return rows.map((row) => {
    const receipts = objectOrNull(row, 'receipts')
    return { agent_id: text(row, 'id'), receipts, reported_at: receipts && timeOrNull(row, 'last_seen_at') }
  })
}
