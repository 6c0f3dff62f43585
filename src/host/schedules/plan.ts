/** Decides what a schedule does at a moment: start a run, leave a due time out, or nothing. It reads no clock and writes nothing. */

import { pastDues, type Timing } from './timing.ts'

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

export type Step =
  | { readonly do: 'nothing' }
  /** The clock was set back behind what was handled; what is due from now on has its row already if it was started. */
  | { readonly do: 'rewind'; readonly checked: number }
  /** `passedOver`: how many earlier due times this run stands for. */
  | { readonly do: 'fire'; readonly due: number; readonly passedOver: number }
  | { readonly do: 'leave'; readonly state: 'missed' | 'skipped'; readonly due: number; readonly passedOver: number }

/** A due time that is older than this was missed. Longer than the longest sleep of the scheduler. */
const graceMs = 90_000
/** With `run-all` older ones are passed over. */
const mostAtOnce = 100

export function planStep(schedule: Planned, now: number): Step {
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
