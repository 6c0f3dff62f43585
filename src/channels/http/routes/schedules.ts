/** Answers about schedules: list, add, change, remove, run now. Whoever changes one decides what runs with the operator's rights. */

import { z } from '@hono/zod-openapi'
import type { NewSchedule, Schedule, ScheduledRun, ScheduleOptions, Schedules } from '../../../host/contract/schedules-api.ts'
import { json } from '../../../http/answers/shapes.ts'
import { route } from '../../../http/api.ts'
import { HttpError } from '../../../http/http-error.ts'
import type { Gateway, GatewayApi } from '../gateway.ts'
import { messageText } from '../shapes.ts'

const word = z.string().max(1_000)
const options = {
  zone: z.string().max(64).optional().openapi({ example: 'Europe/Berlin' }),
  channel: z.optional(word),
  to: z.optional(word),
  check: z.string().max(1_000).optional().openapi({ example: 'test -s report.md' }),
  missed: z.enum(['run-once', 'skip', 'run-all']).optional(),
  overlap: z.enum(['skip', 'wait']).optional(),
  conversation: z.enum(['new', 'same']).optional(),
  pause_after: z.int().min(0).max(1_000_000).optional(),
  agent: z.optional(word),
  autonomy: z.enum(['readonly', 'supervised', 'full']).optional(),
  workspace: z.optional(word),
}
const timing = { at: z.optional(word), every: z.optional(word), cron: z.optional(word) }
const newSchedule = z.strictObject({ name: word, message: messageText, ...timing, ...options })
const change = z.strictObject({
  name: z.optional(word),
  message: z.optional(messageText),
  state: z.enum(['active', 'paused']).optional(),
  ...timing,
  ...options,
})
const run = z.object({
  due: z.string(),
  started: z.string(),
  state: z.enum(['running', 'good', 'bad', 'interrupted', 'missed', 'skipped']),
  started_by: z.enum(['timer', 'hand']),
  attempt: z.int(),
  passed_over: z.int(),
  ended: z.string().nullable(),
  ending: z.string().nullable(),
  message: z.string().nullable(),
  check: z.string().nullable(),
  run_id: z.string().nullable(),
  conversation_id: z.string().nullable(),
  tokens: z.int().nullable(),
  cost_micros: z.int().nullable(),
  sent: z.string().nullable(),
})
const scheduleFields = {
  id: z.string(),
  name: z.string(),
  state: z.enum(['active', 'paused', 'done']),
  why: z.string().nullable(),
  kind: z.enum(['at', 'every', 'cron']),
  when: z.string(),
  zone: z.string(),
  next: z.array(z.string()),
  message: z.string(),
  workspace: z.string(),
  agent: z.string().nullable(),
  autonomy: z.string().nullable(),
  conversation: z.enum(['new', 'same']),
  channel: z.string().nullable(),
  to: z.string().nullable(),
  check: z.string().nullable(),
  missed: z.enum(['run-once', 'skip', 'run-all']),
  overlap: z.enum(['skip', 'wait']),
  pause_after: z.int(),
  failures: z.int(),
  created: z.string(),
  last: z.nullable(run),
}
const schedule = z.object(scheduleFields)
const shown = z.object({ ...scheduleFields, runs: z.array(run) })
const named = { params: z.object({ id: z.string().max(100).openapi({ description: 'An id or a name' }) }) }

export function schedulesRoutes(app: GatewayApi, { host }: Gateway): void {
  app.openapi(
    route('read', {
      method: 'get',
      path: '/schedules',
      summary: 'All schedules, and when they are due',
      responses: { 200: json(z.object({ schedules: z.array(schedule) }), 'Oldest first') },
    }),
    async (c) => c.json({ schedules: (await host.schedules()).list().map(scheduleOut) }, 200),
  )
  app.openapi(
    route('admin', {
      method: 'post',
      path: '/schedules',
      summary: 'Add a schedule: exactly one of at, every and cron says when',
      request: { body: json(newSchedule, 'What is to be done, and when') },
      responses: { 201: json(schedule, 'The schedule') },
    }),
    async (c) => {
      const { name, message, at, every, cron, ...rest } = c.req.valid('json')
      const wanted: NewSchedule = { name, message, timing: { at, every, cron }, ...optionsIn(rest) }
      return c.json(scheduleOut((await host.schedules()).add(wanted)), 201)
    },
  )
  app.openapi(
    route('read', {
      method: 'get',
      path: '/schedules/{id}',
      summary: 'One schedule with its last runs',
      request: { ...named, query: z.object({ limit: z.coerce.number().int().min(1).max(200).optional() }) },
      responses: { 200: json(shown, 'The runs are listed latest first') },
    }),
    async (c) => {
      const schedules = await host.schedules()
      const { id } = existing(schedules, c.req.valid('param').id)
      const runs = schedules.runs(id, c.req.valid('query').limit ?? 20).map(runOut)
      return c.json({ ...scheduleOut(schedules.show(id)), runs }, 200)
    },
  )
  app.openapi(
    route('admin', {
      method: 'patch',
      path: '/schedules/{id}',
      summary: 'Change, pause or resume a schedule',
      request: { ...named, body: json(change, 'What is not mentioned stays; an empty text takes an option away') },
      responses: { 200: json(schedule, 'The schedule') },
    }),
    async (c) => {
      const schedules = await host.schedules()
      const { id } = existing(schedules, c.req.valid('param').id)
      const { name, message, state, at, every, cron, ...rest } = c.req.valid('json')
      const isRetimed = [at, every, cron].some((each) => each !== undefined)
      schedules.change(id, { name, message, ...optionsIn(rest), ...(isRetimed ? { timing: { at, every, cron } } : {}) })
      if (state === 'paused') schedules.pause(id)
      if (state === 'active') schedules.resume(id)
      return c.json(scheduleOut(schedules.show(id)), 200)
    },
  )
  app.openapi(
    route('admin', {
      method: 'delete',
      path: '/schedules/{id}',
      summary: 'Remove a schedule with its history; a run that is under way goes on',
      request: named,
      responses: { 200: json(schedule, 'What was removed') },
    }),
    async (c) => {
      const schedules = await host.schedules()
      return c.json(scheduleOut(schedules.remove(existing(schedules, c.req.valid('param').id).id)), 200)
    },
  )
  app.openapi(
    route('admin', {
      method: 'post',
      path: '/schedules/{id}/run',
      summary: 'Start a run now',
      request: named,
      responses: { 202: json(run, 'The run has been started') },
    }),
    async (c) => {
      const schedules = await host.schedules()
      return c.json(runOut(schedules.runNow(existing(schedules, c.req.valid('param').id).id).run), 202)
    },
  )
}

function existing(schedules: Schedules, name: string): Schedule {
  const found = schedules.list().find((each) => each.id === name || each.name === name)
  if (found) return found
  throw new HttpError(404, 'not_found', `there is no schedule ${JSON.stringify(name)}`)
}

type Given = Omit<z.infer<typeof newSchedule>, 'name' | 'message' | 'at' | 'every' | 'cron'>

function optionsIn({ pause_after, ...rest }: Given): ScheduleOptions {
  return { ...rest, pauseAfter: pause_after }
}

function scheduleOut({ pauseAfter, last, ...rest }: Schedule): z.infer<typeof schedule> {
  const { why = null, agent = null, autonomy = null, channel = null, to = null, check = null } = rest
  return {
    ...{ ...rest, next: [...rest.next] },
    ...{ why, agent, autonomy, channel, to, check, pause_after: pauseAfter, last: last ? runOut(last) : null },
  }
}

function runOut({ startedBy, passedOver, runId, conversationId, costMicros, ...rest }: ScheduledRun): z.infer<typeof run> {
  const { ended = null, ending = null, message = null, check = null, tokens = null, sent = null } = rest
  return {
    ...{ ...rest, ended, ending, message, check, tokens, sent, started_by: startedBy, passed_over: passedOver },
    ...{ run_id: runId ?? null, conversation_id: conversationId ?? null, cost_micros: costMicros ?? null },
  }
}
