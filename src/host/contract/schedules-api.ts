/** Declares what entrances see of schedules. Times are ISO 8601 in UTC. */

import type { ScheduleDefinition, ScheduleRow, ScheduleStore } from '../../memory/schedule-store.ts'

/** When a schedule is due, as a person writes it: exactly one of them. */
export type WrittenTiming = { readonly at?: string | undefined; readonly every?: string | undefined; readonly cron?: string | undefined }

export type ScheduleOptions = {
  readonly message?: string | undefined
  /** An IANA time zone; default: the one of the system. */
  readonly zone?: string | undefined
  readonly workspace?: string | undefined
  readonly agent?: string | undefined
  readonly autonomy?: string | undefined
  readonly conversation?: ScheduleRow['conversation'] | undefined
  /** The channel that gets the answer. */
  readonly channel?: string | undefined
  /** A conversation id, or the address that the channel itself uses. */
  readonly to?: string | undefined
  /** A command that must exit with 0 after the run. */
  readonly check?: string | undefined
  readonly missed?: ScheduleRow['missed'] | undefined
  readonly overlap?: ScheduleRow['overlap'] | undefined
  readonly pauseAfter?: number | undefined
}

export type NewSchedule = ScheduleOptions & { readonly name: string; readonly timing: WrittenTiming; readonly madeInChat?: true }

export type ScheduleChange = ScheduleOptions & { readonly name?: string | undefined; readonly timing?: WrittenTiming | undefined }

export type ScheduledRun = {
  readonly due: string
  readonly started: string
  readonly state: 'running' | 'good' | 'bad' | 'interrupted' | 'missed' | 'skipped'
  readonly startedBy: 'timer' | 'hand'
  readonly attempt: number
  /** How many earlier due times this one stands for. */
  readonly passedOver: number
  readonly ended?: string
  readonly ending?: string
  readonly message?: string
  /** `passed`, or why it did not pass. */
  readonly check?: string
  readonly runId?: string
  readonly conversationId?: string
  readonly tokens?: number
  /** Millionths of a US dollar; absent when the price is unknown. */
  readonly costMicros?: number
  /** When the answer was sent, or why it was not. */
  readonly sent?: string
}

type FromRow = 'id' | 'name' | 'state' | 'kind' | 'zone' | 'message' | 'workspace' | 'conversation' | 'missed' | 'overlap' | 'pauseAfter'

/** `failures`: in a row. */
export type Schedule = Pick<ScheduleRow, FromRow | 'failures'> & {
  /** Why it is paused. */
  readonly why?: string
  /** In words: `every 2h`, `cron 0 9 * * *`, `at 2026-12-24T08:00:00.000Z`. */
  readonly when: string
  /** The next due times; none when it is paused or done. */
  readonly next: readonly string[]
  readonly agent?: string
  readonly autonomy?: string
  readonly channel?: string
  readonly to?: string
  readonly check?: string
  readonly created: string
  /** The agent made it for the chat that it answers to. */
  readonly madeInChat?: true
  readonly last?: ScheduledRun
}

export type StartedRun = { readonly run: ScheduledRun; readonly ended: Promise<ScheduledRun> }

/** The scheduler of this process. `wake`: something was changed here, so look at once. */
export type LocalScheduler = { start(id: string): StartedRun; wake(): void }

/** Every method that names a schedule takes its name or its id, and throws FailureError `usage` when there is none. */
export type Schedules = {
  list(): readonly Schedule[]
  show(name: string): Schedule
  /** Latest first. */
  runs(name: string, limit: number): readonly ScheduledRun[]
  /** `accept` may refuse the definition by throwing. @throws FailureError `usage` that says what is wrong */
  add(newSchedule: NewSchedule, accept?: (definition: ScheduleDefinition) => void): Schedule
  change(name: string, change: ScheduleChange): Schedule
  pause(name: string, why?: string): Schedule
  /** Skips the due times that passed while it was paused. */
  resume(name: string): Schedule
  remove(name: string): Schedule
  /** Starts a run now. @throws FailureError `error` when this process runs no schedules */
  runNow(name: string): StartedRun
  /** Tells whether a process of this home starts what is due. */
  isServed(): boolean
  /** Called by the scheduler of this process, with nothing when it ends. */
  attach(scheduler: LocalScheduler | undefined): void
  readonly store: ScheduleStore
}
