/** Answers about schedules: list, add, change, remove, run now. A change decides what runs with the operator's rights. */

import { z } from '@hono/zod-openapi'
import type { NewSchedule, Schedule, ScheduledRun, ScheduleOptions, Schedules } from '../../../host/contract/schedules-api.ts'
import { addJsonRoute, inScope } from '../../../http/api.ts'
import { HttpError } from '../../../http/http-error.ts'
import { schedule, scheduledRun } from '../answer-shapes.ts'
import { type Gateway, type GatewayApi, messageText } from '../gateway.ts'

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
const shown = z.object({ ...schedule.shape, runs: z.array(scheduledRun) })
const named = { params: z.object({ id: z.string().max(100).openapi({ description: 'An id or a name' }) }) }

export function schedulesRoutes(app: GatewayApi, { host }: Gateway): void {
  addJsonRoute(app, inScope('read'), 'get /schedules', {
    summary: 'All schedules, and when they are due',
    gives: [z.object({ schedules: z.array(schedule) }), 'Oldest first'],
    answer: async () => ({ schedules: (await host.schedules()).list().map(scheduleOut) }),
  })
  addJsonRoute(app, inScope('admin'), 'post /schedules', {
    summary: 'Add a schedule: exactly one of at, every and cron says when',
    body: [newSchedule, 'What is to be done, and when'],
    gives: [schedule, 'The schedule'],
    status: 201,
    async answer({ body: { name, message, at, every, cron, ...rest } }) {
      const created: NewSchedule = { name, message, timing: { at, every, cron }, ...optionsIn(rest) }
      return scheduleOut((await host.schedules()).add(created))
    },
  })
  addJsonRoute(app, inScope('read'), 'get /schedules/{id}', {
    summary: 'One schedule with its last runs',
    ...named,
    query: z.object({ limit: z.coerce.number().int().min(1).max(200).optional() }),
    gives: [shown, 'The runs are listed latest first'],
    async answer({ params, query }) {
      const schedules = await host.schedules()
      const { id } = existing(schedules, params.id)
      const runs = schedules.runs(id, query.limit ?? 20).map(runOut)
      return { ...scheduleOut(schedules.show(id)), runs }
    },
  })
  addJsonRoute(app, inScope('admin'), 'patch /schedules/{id}', {
    summary: 'Change, pause or resume a schedule',
    ...named,
    body: [change, 'What is not mentioned stays; an empty text takes an option away'],
    gives: [schedule, 'The schedule'],
    async answer({ params, body }) {
      const schedules = await host.schedules()
      const { id } = existing(schedules, params.id)
      const { name, message, state, at, every, cron, ...rest } = body
      const isRetimed = [at, every, cron].some((each) => each !== undefined)
      schedules.change(id, { name, message, ...optionsIn(rest), ...(isRetimed ? { timing: { at, every, cron } } : {}) })
      if (state === 'paused') schedules.pause(id)
      if (state === 'active') schedules.resume(id)
      return scheduleOut(schedules.show(id))
    },
  })
  addJsonRoute(app, inScope('admin'), 'delete /schedules/{id}', {
    summary: 'Remove a schedule with its history; a run that is under way continues',
    ...named,
    gives: [schedule, 'What was removed'],
    async answer({ params }) {
      const schedules = await host.schedules()
      return scheduleOut(schedules.remove(existing(schedules, params.id).id))
    },
  })
  addJsonRoute(app, inScope('admin'), 'post /schedules/{id}/run', {
    summary: 'Start a run now',
    ...named,
    gives: [scheduledRun, 'The run has been started'],
    status: 202,
    async answer({ params }) {
      const schedules = await host.schedules()
      return runOut(schedules.runNow(existing(schedules, params.id).id).run)
    },
  })
}

function existing(schedules: Schedules, name: string): Schedule {
  const found = schedules.list().find((each) => each.id === name || each.name === name)
  if (found) return found
  throw new HttpError(404, 'not_found', `the schedule ${JSON.stringify(name)} does not exist`)
}

type OptionsBody = Omit<z.infer<typeof newSchedule>, 'name' | 'message' | 'at' | 'every' | 'cron'>

function optionsIn({ pause_after, ...rest }: OptionsBody): ScheduleOptions {
  return { ...rest, pauseAfter: pause_after }
}

function scheduleOut({ pauseAfter, last, ...rest }: Schedule): z.infer<typeof schedule> {
  const { why = null, agent = null, autonomy = null, channel = null, to = null, check = null } = rest
  return {
    ...{ ...rest, next: [...rest.next] },
    ...{ why, agent, autonomy, channel, to, check, pause_after: pauseAfter, last: last ? runOut(last) : null },
  }
}

function runOut({ startedBy, passedOver, runId, conversationId, costMicros, ...rest }: ScheduledRun): z.infer<typeof scheduledRun> {
  const { ended = null, ending = null, message = null, check = null, tokens = null, sent = null } = rest
  return {
    ...{ ...rest, ended, ending, message, check, tokens, sent, started_by: startedBy, passed_over: passedOver },
    ...{ run_id: runId ?? null, conversation_id: conversationId ?? null, cost_micros: costMicros ?? null },
  }
}
