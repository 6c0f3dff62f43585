/** Takes what an operator decides about a task: cancel, retry, resolve. */

import { json, plain } from '../../../http/answers/shapes.ts'
import { resolveRequest, task } from '../../contract/task-shapes.ts'
import { controlRoute, prefix } from '../access/control-route.ts'
import type { ControlApi, ControlServer } from '../control-server.ts'
import { note, taskAt } from '../request-shapes.ts'

export function decisionRoutes(app: ControlApi, { plane }: ControlServer): void {
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/tasks/{id}/cancel`,
      summary: 'Cancel a task; a running one is told with its next beat',
      request: { params: taskAt, body: json(note, 'Why') },
      responses: { 200: json(task, 'The task now'), 409: { description: 'It has ended' } },
    }),
    async (c) => c.json(plain(await plane.tasks.cancel(c.var.caller, c.req.valid('param').id, c.req.valid('json').note)), 200),
  )
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/tasks/{id}/retry`,
      summary: 'Put a task that has failed, died or waits back into the queue',
      request: { params: taskAt, body: json(note, 'Why') },
      responses: { 200: json(task, 'The task now'), 409: { description: 'Its state does not allow it' } },
    }),
    async (c) => c.json(plain(await plane.tasks.retry(c.var.caller, c.req.valid('param').id, c.req.valid('json').note)), 200),
  )
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/tasks/{id}/resolve`,
      summary: 'Say what became of an effect in doubt: done, redo or give_up',
      request: { params: taskAt, body: json(resolveRequest, 'The decision') },
      responses: { 200: json(task, 'The task now'), 409: { description: 'Nothing of it is in doubt' } },
    }),
    async (c) => c.json(plain(await plane.tasks.resolve(c.var.caller, c.req.valid('param').id, c.req.valid('json'))), 200),
  )
}
