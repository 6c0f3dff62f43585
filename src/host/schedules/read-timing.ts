/** Reads what people write for a time, an interval, a cron expression and a time zone. */

import { attempt, errorText } from '../../kit/errors.ts'
import { didYouMean } from '../../kit/text.ts'
import type { WrittenTiming } from '../contract/schedules-api.ts'
import { FailureError } from '../failure.ts'
import { nextDue, type Timing } from './timing.ts'

type TimingContext = { readonly now: number; readonly zone: string }

const units: { readonly [unit: string]: number } = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }
const leastMs = 10_000
const mostMs = 366 * 86_400_000

/** @throws FailureError `usage` that says what is allowed */
export function readTiming({ at, every, cron }: WrittenTiming, reading: TimingContext): Timing {
  const timings = [at, every, cron].filter((each) => each !== undefined)
  if (timings.length !== 1) throw wrong('say when with exactly one of --at, --every and --cron')
  if (at !== undefined) return { kind: 'at', at: readTime(at, reading) }
  if (every !== undefined) return { kind: 'every', everyMs: readInterval(every), anchor: reading.now }
  return readCron(cron ?? '', reading)
}

/** @throws FailureError `usage` for a zone that the system does not know */
export function readZone(zone: string, flag = '--tz'): string {
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: zone }).resolvedOptions()
    // Intl also knows offsets such as +02:00, in which nothing can be due.
    nextDue({ kind: 'cron', expression: '@daily', zone: timeZone }, 0)
    return timeZone
  } catch {
    const near = didYouMean(zone, [...Intl.supportedValuesOf('timeZone'), 'UTC'])
    throw wrong(
      `${flag} "${zone}" is not a time zone${near || '; write one like Europe/Berlin, Etc/GMT-2 (two hours ahead of UTC) or UTC'}`,
    )
  }
}

function readCron(expression: string, { now, zone }: TimingContext): Timing {
  const timing: Timing = { kind: 'cron', expression: expression.trim(), zone }
  const next = parsed(timing, now)
  if (next === undefined) throw wrong(`--cron "${expression}" is never due: no date matches it`)
  return timing
}

function parsed(timing: Timing, now: number): number | undefined {
  try {
    return nextDue(timing, now)
  } catch (error) {
    const why = errorText(error).replace(/^(Invalid cron expression|Bun\.cron): /, '')
    const form = 'write minute, hour, day, month and weekday, like "0 9 * * mon-fri", or @daily'
    throw wrong(
      `--cron "${timing.kind === 'cron' ? timing.expression : ''}": ${why.replaceAll('Bun.cron uses 5 fields', 'there are 5 fields')}; ${form}`,
    )
  }
}

/** @throws FailureError `usage` */
function readInterval(text: string): number {
  const ms = durationOf(text)
  if (ms === undefined) throw wrong(`--every "${text}" is not an interval; write one like 30m, 2h, 1h30m or 1d`)
  if (ms < leastMs || ms > mostMs) throw wrong(`--every "${text}": an interval is from 10s to 366d`)
  return ms
}

/** Returns `1h30m` in milliseconds; undefined for other text. */
export function durationOf(text: string): number | undefined {
  const compact = text.replaceAll(/\s/g, '')
  if (!/^(\d{1,6}[smhdw])+$/.test(compact)) return undefined
  return [...compact.matchAll(/(\d+)([smhdw])/g)].reduce((sum, [, number, unit]) => sum + Number(number) * (units[unit ?? ''] ?? 0), 0)
}

/** @param flag names what the person wrote it behind @throws FailureError `usage` unless it is a time to come */
export function readTime(text: string, { now, zone }: TimingContext, flag = '--at'): number {
  const at = timeOf(text.trim(), { now, zone })
  if (at === undefined || Number.isNaN(at)) {
    throw wrong(
      `${flag} "${text}" is not a time; write "in 20m", "18:30", "2026-12-24 09:00" (${flag === '--at' ? 'in the zone of --tz' : 'here'}) or "2026-12-24T09:00:00Z"`,
    )
  }
  if (at <= now) throw wrong(`${flag} "${text}" is ${new Date(at).toISOString()}, and that is past`)
  return at
}

function timeOf(text: string, { now, zone }: TimingContext): number | undefined {
  const wait = /^in\s+(.+)$/i.exec(text)?.[1]
  if (wait !== undefined) {
    const ms = durationOf(wait)
    return ms === undefined ? undefined : now + ms
  }
  const [, hour, minute] = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(text) ?? []
  if (hour !== undefined) return nextDue({ kind: 'cron', expression: `${Number(minute)} ${Number(hour)} * * *`, zone }, now)
  const [, day, clock, offset] =
    /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?)(Z|[+-]\d{2}:\d{2})?)?$/i.exec(text) ?? []
  if (day === undefined) return undefined
  return instantOf(`${day}T${clock ?? '00:00'}`, { offset, zone })
}

/** A time that a night leaves out counts an hour later, and one that a night repeats counts the first time. */
function instantOf(local: string, { offset, zone }: { readonly offset: string | undefined; readonly zone: string }): number | undefined {
  const instant = () => (offset === undefined ? undefined : Temporal.Instant.from(`${local}${offset}`))
  const zoned = () => Temporal.PlainDateTime.from(local, { overflow: 'reject' }).toZonedDateTime(zone)
  return attempt(() => (instant() ?? zoned()).epochMilliseconds)
}

/** Refuses what a person wrote. */
export function wrong(words: string): FailureError {
  return new FailureError('usage', words)
}
