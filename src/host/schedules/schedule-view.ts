/** Turns the rows of the database into what entrances see, and a written timing into a row and back. */

import type { FiredRow, ScheduleRow } from '../../memory/schedule-store.ts'
import type { Schedule, ScheduledRun } from '../contract/schedules-api.ts'
import { nextDue, nextDues, type Timing } from './timing.ts'

export function timingOf({ kind, spec, zone, anchor }: Pick<ScheduleRow, 'kind' | 'spec' | 'zone' | 'anchor'>): Timing {
  if (kind === 'cron') return { kind, expression: spec, zone }
  return kind === 'at' ? { kind, at: Number(spec) } : { kind, everyMs: Number(spec), anchor }
}

/** Returns the columns of a timing; an interval is counted from its own anchor. */
export function columnsOf(timing: Timing, now: number): Pick<ScheduleRow, 'kind' | 'spec' | 'anchor'> {
  if (timing.kind === 'cron') return { kind: 'cron', spec: timing.expression, anchor: now }
  if (timing.kind === 'at') return { kind: 'at', spec: String(timing.at), anchor: now }
  return { kind: 'every', spec: String(timing.everyMs), anchor: timing.anchor }
}

const shownDues = 3

export function viewOf(row: ScheduleRow, { now, last }: { readonly now: number; readonly last?: FiredRow | undefined }): Schedule {
  const timing = timingOf(row)
  const { id, name, state, kind, zone, message, workspace, conversation, missed, overlap, pauseAfter, failures } = row
  return {
    ...{ id, name, state, kind, when: wordsOf(timing), zone, message, workspace, conversation, missed, overlap, pauseAfter, failures },
    next: state === 'active' ? nextDues(timing, now, shownDues).map(iso) : [],
    created: iso(row.created),
    ...(row.madeInChat ? { madeInChat: true } : {}),
    ...present({
      why: row.why || null,
      agent: row.agent,
      autonomy: row.autonomy,
      channel: row.channel,
      to: row.recipient,
      check: row.checkCommand,
    }),
    last: last && runViewOf(last),
  }
}

export function runViewOf(row: FiredRow): ScheduledRun {
  const { due, fired, state, startedBy, attempt, passedOver, ended, ending, message } = row
  const { checked, runId, conversationId, tokens, micros, sent } = row
  return {
    ...{ due: iso(due), started: iso(fired), state, startedBy, attempt, passedOver },
    ...present({ ended: ended === null ? null : iso(ended), ending, message: message || null, check: checked, runId, conversationId }),
    ...present({ tokens, costMicros: micros, sent }),
  }
}

function wordsOf(timing: Timing): string {
  if (timing.kind === 'cron') return `cron ${timing.expression}`
  return timing.kind === 'at' ? `at ${iso(timing.at)}` : `every ${durationWords(timing.everyMs)}`
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** 5400000 → `1h30m`. */
function durationWords(ms: number): string {
  const parts = units.map(([unit, size], at) => {
    const larger = units[at - 1]?.[1]
    const number = Math.floor((larger === undefined ? ms : ms % larger) / size)
    return number === 0 ? '' : `${number}${unit}`
  })
  return parts.join('')
}

/** `Tue 2026-12-01 09:00 Europe/Berlin`, with seconds only where there are some. */
export function timeText(iso: string, zone: string): string {
  const parts = new Intl.DateTimeFormat('en-GB', {
    ...{ timeZone: zone, weekday: 'short', year: 'numeric', month: '2-digit', day: '2-digit' },
    ...{ hour: '2-digit', minute: '2-digit', second: '2-digit' },
  }).formatToParts(new Date(iso))
  const part = (wanted: string) => parts.find(({ type }) => type === wanted)?.value ?? ''
  const seconds = part('second') === '00' ? '' : `:${part('second')}`
  return `${part('weekday')} ${part('year')}-${part('month')}-${part('day')} ${part('hour')}:${part('minute')}${seconds} ${zone}`
}

export function iso(at: number): string {
  return new Date(at).toISOString()
}

type Present<Values> = { readonly [Name in keyof Values]?: Exclude<Values[Name], null> }

/** Leaves out what is null. */
function present<Values extends { readonly [name: string]: string | number | null }>(values: Values): Present<Values> {
  const found: Present<Values> = {}
  for (const name in values) {
    const value = values[name]
    if (value !== null) Object.assign(found, { [name]: value })
  }
  return found
}

/** Returns the names of the schedules that should have been started by now. */
export function overdueNames(rows: readonly ScheduleRow[], now: number): readonly string[] {
  return rows.flatMap((row) => {
    const due = row.state === 'active' ? nextDue(timingOf(row), row.checked) : undefined
    return due !== undefined && due <= now ? [row.name] : []
  })
}
