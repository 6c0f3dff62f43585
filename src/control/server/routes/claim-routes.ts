/** Gives tasks to workers: claims that wait for one, beats that keep the lease, and releases. */

import { json, plain } from '../../../http/answers/shapes.ts'
import type { Connection } from '../../../http/listen.ts'
import type { QuickRoutes } from '../../../http/quick-routes.ts'
import type { Caller } from '../../contract/caller.ts'
import { beat, type Claim, claim, claimRequest, releaseRequest, task } from '../../contract/task-shapes.ts'
import { controlRoute, guardOf, prefix } from '../access/control-route.ts'
import type { ControlApi, ControlServer } from '../control-server.ts'
import { nothing, taskAt } from '../request-shapes.ts'

export function claimRoutes(app: ControlApi, server: ControlServer, quick: QuickRoutes<Caller>): void {
  const { plane } = server
  quick.add({
    config: {
      path: `${prefix}/tasks/claim`,
      summary: 'Claim the next task of a role; waits up to wait_ms for one',
      responses: { 200: json(claim, 'The task with its lease'), 204: { description: 'There was none in that time' } },
    },
    guard: guardOf('POST /tasks/claim', 'secret'),
    body: claimRequest,
    asks: 'For whom',
    async answer(request, { caller, env }) {
      const claimed = await claimFor(server, caller, { request, connection: env.connection })
      return claimed ? { status: 200, body: claimed } : { status: 204 }
    },
  })
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/tasks/{id}/beat`,
      summary: 'Keep the lease, and learn whether the task is cancelled',
      request: { params: taskAt, body: json(nothing, 'Nothing') },
      responses: { 200: json(beat, 'Until when'), 409: { description: 'lease_lost: stop, nothing more counts' } },
    }),
    async (c) => c.json(plain(await plane.tasks.beat(c.var.caller, c.req.valid('param').id)), 200),
  )
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/tasks/{id}/release`,
      summary: 'Give the task back',
      request: { params: taskAt, body: json(releaseRequest, 'How it ended') },
      responses: { 200: json(task, 'The task now'), 409: { description: 'lease_lost' } },
    }),
    async (c) => c.json(plain(await plane.tasks.release(c.var.caller, c.req.valid('param').id, c.req.valid('json'))), 200),
  )
}

type Asked = { readonly request: Parameters<ControlServer['plane']['tasks']['claim']>[1]; readonly connection: Connection }

/** A task that was claimed when the client had left already goes back at once. */
async function claimFor(server: ControlServer, caller: Caller, asked: Asked): Promise<Claim | undefined> {
  const { request, connection } = asked
  const { tasks } = server.plane
  const claimed = await (request.wait_ms === 0 ? tasks.claim(caller, request, connection.gone) : waitFor(server, caller, asked))
  if (!claimed || !connection.gone.aborted) return claimed
  await tasks.release(holderOf(claimed, request.agent_id), claimed.task.task_id, { outcome: 'now' })
  return undefined
}

/** A client that leaves ends the wait. */
async function waitFor(
  { plane, stopping, counters }: ControlServer,
  caller: Caller,
  { request, connection }: Asked,
): Promise<Claim | undefined> {
  const ended = counters.began('poll', caller)
  connection.stay()
  try {
    return await plane.tasks.claim(caller, request, AbortSignal.any([connection.gone, stopping]))
  } finally {
    ended()
  }
}

function holderOf({ task, run_id, attempt }: Claim, agentId: string): Caller {
  return { kind: 'run', id: agentId, role: task.role, taskId: task.task_id, runId: run_id, attempt }
}
