/**
 * Computes when a schedule is due (once, at an interval, or by a cron expression in a time zone), and decides what it does at a moment. It
 * reads no clock and writes nothing.
 */

export type Timing =
  | { readonly kind: 'at'; readonly at: number }
  /** Due at `anchor` plus each multiple of `everyMs`. */
  | { readonly kind: 'every'; readonly everyMs: number; readonly anchor: number }
  /**
   * Where a night leaves out an hour, a time in it is due an hour later; where a night repeats an hour, a time in it is due once, and an
   * expression for every few minutes is due in both.
   */
  | { readonly kind: 'cron'; readonly expression: string; readonly zone: string }

/**
 * Returns the first due time after `after`; undefined when there is none. @throws what Bun.cron.parse throws for a wrong expression or zone
 */
export function nextDue(timing: Timing, after: number): number | undefined {
  if (timing.kind === 'at') return timing.at > after ? timing.at : undefined
  if (timing.kind === 'every') {
    const { everyMs, anchor } = timing
    return anchor + Math.max(1, Math.floor((after - anchor) / everyMs) + 1) * everyMs
  }
  // Without `tz` Bun uses the zone of the process.
  return Bun.cron.parse(timing.expression, new Date(after), { tz: timing.zone })?.getTime()
}

/** Returns the next due times, at most `count`. */
export function nextDues(timing: Timing, after: number, count: number): readonly number[] {
  const found: number[] = []
  for (let at = nextDue(timing, after); at !== undefined && found.length < count; at = nextDue(timing, at)) found.push(at)
  return found
}

const dayMs = 86_400_000
/** Due times are first sought in the last month, then further back: after a wrong clock the way from the last one may be years long. */
const windows = [31 * dayMs, 366 * dayMs, Number.POSITIVE_INFINITY]

/** Returns the due times after `after` up to `now`, oldest first. Of a gap that is longer than a month it returns the last month. */
export function pastDues(timing: Timing, after: number, now: number): readonly number[] {
  for (const window of windows) {
    const from = Math.max(after, now - window)
    const found: number[] = []
    for (let at = nextDue(timing, from); at !== undefined && at <= now; at = nextDue(timing, at)) found.push(at)
    if (found.length > 0 || from === after) return found
  }
  return []
}

export type Planned = {
  readonly timing: Timing
  readonly missed: 'run-once' | 'skip' | 'run-all'
  readonly overlap: 'skip' | 'wait'
  /** Due times up to this one were handled. */
  readonly checked: number
  /** A run of this schedule is under way, in any process. */
  readonly isRunning: boolean
  /** When the latest run ended. */
  readonly lastEnded?: number | undefined
}

export type ScheduleStep =
  | { readonly do: 'nothing' }
  /** The clock was set back behind what was handled; what is due from now on has its row already if it was started. */
  | { readonly do: 'rewind'; readonly checked: number }
  /** `passedOver`: how many earlier due times this run stands for. */
  | { readonly do: 'fire'; readonly due: number; readonly passedOver: number }
  | { readonly do: 'leave'; readonly state: 'missed' | 'skipped'; readonly due: number; readonly passedOver: number }

/** A due time that is older than this was missed. Longer than the longest sleep of the scheduler. */
const graceMs = 90_000
/** The most due times that `run-all` makes up for; it skips older ones. */
const mostAtOnce = 100

/** Decides what a schedule does at a moment: start a run, leave a due time out, or nothing. */
export function planStep(schedule: Planned, now: number): ScheduleStep {
  const { timing, missed, overlap, checked, isRunning, lastEnded = Number.NEGATIVE_INFINITY } = schedule
  if (now < checked) return { do: 'rewind', checked: now }
  const all = pastDues(timing, checked, now)
  const dues = missed === 'run-all' ? all.slice(-mostAtOnce) : all
  const latest = dues.at(-1)
  if (latest === undefined) return { do: 'nothing' }
  const passedOver = all.length - 1
  if (isRunning) return overlap === 'wait' ? { do: 'nothing' } : { do: 'leave', state: 'skipped', due: latest, passedOver }
  const [oldest = latest] = dues
  if (missed === 'run-all') return { do: 'fire', due: oldest, passedOver: all.length - dues.length }
  const isMissed = now - latest > graceMs && latest > lastEnded
  if (isMissed && missed === 'skip') return { do: 'leave', state: 'missed', due: latest, passedOver }
  return { do: 'fire', due: latest, passedOver }
}
