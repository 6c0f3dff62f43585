/** Lists, adds, pauses and removes schedules. */

import { z } from '@hono/zod-openapi'
import { schedule, scheduleDraft } from '../../contract/schedule-shapes.ts'
import { addRoute } from '../access/control-route.ts'
import type { ControlApi, ControlServer } from '../control-server.ts'
import { madeAt, nothing, removed } from '../request-shapes.ts'

export function scheduleRoutes(app: ControlApi, { plane }: ControlServer): void {
  const { schedules } = plane
  addRoute(app, 'get', '/schedules', {
    summary: 'All schedules',
    gives: [z.object({ schedules: z.array(schedule) }), 'The schedules'],
    answer: async ({ caller }) => ({ schedules: await schedules.list(caller) }),
  })
  addRoute(app, 'post', '/schedules', {
    summary: 'Add a schedule that makes a task by the clock',
    body: [scheduleDraft, 'When, and which task'],
    gives: [schedule, 'The schedule'],
    status: 201,
    others: { 409: 'There is one with this name' },
    answer: ({ caller, body }) => schedules.add(caller, body),
  })
  for (const what of ['enable', 'disable'] as const)
    addRoute(app, 'post', `/schedules/{id}/${what}`, {
      summary: what === 'enable' ? 'Let a schedule make tasks' : 'Let a schedule make no tasks',
      params: madeAt,
      body: [nothing, 'Nothing'],
      gives: [schedule, 'The schedule now'],
      answer: ({ caller, params }) => schedules.setEnabled(caller, params.id, what === 'enable'),
    })
  addRoute(app, 'delete', '/schedules/{id}', {
    summary: 'Remove a schedule; its tasks stay',
    params: madeAt,
    gives: [removed, 'It is gone'],
    answer: async ({ caller, params }) => {
      await schedules.remove(caller, params.id)
      return { removed: true } as const
    },
  })
}
