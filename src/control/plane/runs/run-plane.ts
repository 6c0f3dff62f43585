/** Serves runs: what they are, their logs, artifacts and session lines. */

import type { Caller } from '../../contract/caller.ts'
import type { RunPlane } from '../../contract/plane.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import { assertSelf } from '../../contract/rights.ts'
import type { RunQuery } from '../../contract/run-shapes.ts'
import type { Command } from '../../contract/store-port.ts'
import { numberOf, type PlaneContext } from '../context.ts'
import { putArtifact, readArtifact } from './artifacts.ts'
import { deliverRun } from './deliver-run.ts'
import { logGrows } from './log-growth.ts'
import { appendLog, readLog } from './run-log.ts'
import { ownRun, readRun, readRuns } from './run-row.ts'
import { addSessionLine, readSessionLines } from './session-lines.ts'

export function createRunPlane(context: PlaneContext): RunPlane {
  const { store } = context
  return {
    get: async (caller, id) => await store.read(() => getRun(caller, id)),
    list: async (caller, query) => await store.read(() => listRuns(caller, query)),
    appendLog: async (caller, id, at, piece) =>
      await store.write(() => appendLog(context, { caller, id, at, piece, what: 'write its log' })),
    log: async (caller, id, from, to) => await store.read(() => readLog({ caller, id, from, to, what: 'read its log' })),
    logGrows: async (caller, id, from, signal) => await logGrows(context, { access: { caller, id, what: 'read its log' }, from, signal }),
    deliver: async (caller, id, delivery) =>
      await store.write(() => deliverRun(context, { caller, id, delivery, what: 'deliver its results' })),
    putArtifact: async (caller, id, artifact) =>
      await store.write(() => putArtifact(context, { caller, id, artifact, what: 'deliver artifacts' })),
    artifact: async (caller, id, name) => await store.read(() => readArtifact({ caller, id, name, what: 'read its artifacts' })),
    async addSession(caller, agentId, line) {
      assertSelf(caller, agentId, 'write its session')
      await store.write(() => addSessionLine(context, { caller, agentId, line }))
    },
    async sessions(caller, agentId, limit) {
      assertSelf(caller, agentId, 'read its session')
      return await store.read(() => readSessionLines(agentId, limit))
    },
  }
}

function* getRun(caller: Caller, id: string) {
  yield* ownRun({ caller, id, what: 'read its runs' })
  return yield* readRun(id)
}

type Listed = Awaited<ReturnType<RunPlane['list']>>

/** Newest first. An agent and its runs see their own. */
function* listRuns(caller: Caller, { task_id, agent_id, state, limit, after }: RunQuery): Command<Listed> {
  if (caller.kind === 'seed')
    throw new PlaneRefusal('forbidden', 'the shared secret does not read runs; use an operator token or an agent key')
  if (agent_id !== undefined) assertSelf(caller, agent_id, 'list its runs')
  const agentId = caller.kind === 'operator' ? agent_id : caller.id
  const conditions: readonly (readonly [string, string | number | undefined])[] = [
    ['runs.task_id = ?', task_id === undefined ? undefined : numberOf(task_id)],
    ['runs.agent_id = ?', agentId],
    ['runs.state = ?', state],
    ['runs.id < ?', after === undefined ? undefined : numberOf(after)],
  ]
  const given = conditions.flatMap(([text, value]) => (value === undefined ? [] : [[text, value] as const]))
  const where = given.length === 0 ? '' : `WHERE ${given.map(([text]) => text).join(' AND ')}`
  const found = yield* readRuns(`${where} ORDER BY runs.id DESC LIMIT ?`, [...given.map(([, value]) => value), limit + 1])
  const runs = found.slice(0, limit)
  return { runs, next: found.length > limit ? (runs.at(-1)?.run_id ?? null) : null }
}
