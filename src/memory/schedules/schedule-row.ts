/** Declares the rows of the schedules and of their runs as the database stores them. */

/** What a person decided about a schedule. Times are milliseconds since 1970. */
export type ScheduleDefinition = {
  readonly name: string
  readonly kind: 'at' | 'every' | 'cron'
  /** The time for `at`, the interval in milliseconds for `every`, the expression for `cron`. */
  readonly spec: string
  /** An IANA time zone. */
  readonly zone: string
  /** Intervals are counted from here. */
  readonly anchor: number
  readonly message: string
  readonly workspace: string
  readonly agent: string | null
  readonly autonomy: string | null
  readonly conversation: 'new' | 'same'
  readonly channel: string | null
  /** A conversation id, or the address that the channel itself uses. */
  readonly recipient: string | null
  readonly checkCommand: string | null
  readonly missed: 'run-once' | 'skip' | 'run-all'
  readonly overlap: 'skip' | 'wait'
  /** After so many failures in a row the schedule pauses; 0: never. */
  readonly pauseAfter: number
}

export type ScheduleState = 'active' | 'paused' | 'done'

export type ScheduleRow = ScheduleDefinition & {
  readonly id: string
  readonly state: ScheduleState
  /** Why it is paused; otherwise empty. */
  readonly why: string
  /** Due times up to this one were handled. */
  readonly checked: number
  /** Failures in a row. */
  readonly failures: number
  readonly created: number
}

/**
 * `running` until the run has ended; `good` and `bad` as run and check say; `interrupted` when its process ended first; `missed` and
 * `skipped` were never run.
 */
export type FiredState = 'running' | 'good' | 'bad' | 'interrupted' | 'missed' | 'skipped'

export type FiredKey = { readonly scheduleId: string; readonly due: number; readonly attempt: number }

export type FiredRow = FiredKey & {
  readonly state: FiredState
  readonly fired: number
  readonly owner: string
  readonly startedBy: 'timer' | 'hand'
  /** How many earlier due times this one stands for. */
  readonly passedOver: number
  readonly conversationId: string | null
  readonly runId: string | null
  readonly ended: number | null
  /** The code of the run's ending. */
  readonly ending: string | null
  readonly message: string | null
  /** `passed`, or why the check did not pass. */
  readonly checked: string | null
  readonly tokens: number | null
  /** Millionths of a US dollar; null when the price is unknown. */
  readonly micros: number | null
  /** The text that the channel has not sent yet. */
  readonly unsent: string | null
  readonly sender: string | null
  readonly tries: number
  /** When it was sent, or why it was not. */
  readonly sent: string | null
}

export type FiredEnd = Pick<FiredRow, 'ending' | 'message' | 'checked' | 'tokens' | 'micros' | 'unsent'> & {
  readonly state: 'good' | 'bad' | 'interrupted'
  readonly ended: number
}
