/** Shapes of heartbeat schedules: tasks that the control plane makes by the clock. */

import { z } from 'zod'
import { name, taskDraft } from './task-shapes.ts'

export const scheduleDraft = z.strictObject({
  name,
  /** Five fields or @daily; or an interval such as 30m, 2h. Exactly one of both. */
  cron: z.optional(z.string().max(100)),
  every: z.optional(z.string().max(20)),
  timezone: z.string().max(64).default('UTC'),
  /** What happened while no daemon ran: one task for all missed times, none, or one each (100 at most). */
  missed: z.enum(['run-once', 'skip', 'run-all']).default('run-once'),
  /** While the task before has not ended: make no new one, or make it all the same. */
  overlap: z.enum(['skip', 'allow']).default('skip'),
  task: taskDraft,
  enabled: z.boolean().default(true),
})
export type ScheduleDraft = z.infer<typeof scheduleDraft>
export const schedule = z.object({
  ...scheduleDraft.shape,
  schedule_id: z.string(),
  next_at: z.nullable(z.string()),
  last_fired_at: z.nullable(z.string()),
  last_task_id: z.nullable(z.string()),
  created_at: z.string(),
})
export type ControlSchedule = z.infer<typeof schedule>
