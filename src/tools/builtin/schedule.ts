/** Defines the tool schedule, with which a chat has the agent do something there later. */

import { objectSchema } from '../../kit/json.ts'
import type { ToolResult } from '../../runtime/port.ts'
import { fail, type ToolKind } from '../tool-kind.ts'

export type ScheduleInput = {
  readonly message?: string
  readonly at?: string
  readonly every?: string
  readonly cron?: string
  readonly zone?: string
  readonly remove?: string
}

/** Adds to, lists or removes from the schedules of one chat. */
export type ScheduleInChat = (input: ScheduleInput) => Promise<ToolResult>

const parameters = objectSchema({
  message: { type: 'string', minLength: 1, maxLength: 2000 },
  at: { type: 'string' },
  every: { type: 'string' },
  cron: { type: 'string' },
  zone: { type: 'string' },
  remove: { type: 'string' },
})

export const schedule = {
  name: 'schedule',
  description: `Do something later in this chat (a reminder, a regular task). At that time you get \
message alone, without this conversation, and your answer is sent here. Say when with one of at ("in 20m", "18:30", \
"2026-12-24 09:00"), every ("6h", "1d"), cron ("0 9 * * mon-fri"); zone: Europe/Berlin. remove: a name. Without arguments: list.`,
  parameters,
  risk: 'low',
  timeoutMs: 30_000,
  idempotent: false,
  touches: () => [],
  run: async (input, _context, { scheduleInChat }) => scheduleInChat?.(input) ?? fail('only a chat can schedule something'),
} as const satisfies ToolKind<typeof parameters, { readonly scheduleInChat?: ScheduleInChat | undefined }>
