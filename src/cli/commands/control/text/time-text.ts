/** Prints times for people: how long ago, how long until, and a count of tokens. */

import { timeText } from '../../../../host/schedules/schedule-view.ts'
import { grouped } from '../../../../kit/text.ts'

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** Returns `45s`, `3m`, `2h 10m`, `5d`; `0s` for less than a second. */
export function lengthText(ms: number): string {
  const at = units.findIndex(([, size]) => ms >= size)
  const [unit, size] = units[at] ?? (['s', 1_000] as const)
  const whole = Math.max(0, Math.floor(ms / size))
  const [lesser, lesserSize] = units[at + 1] ?? (['s', 1_000] as const)
  const rest = unit === 'h' ? Math.floor((ms % size) / lesserSize) : 0
  return `${whole}${unit}${rest > 0 ? ` ${rest}${lesser}` : ''}`
}

/** Returns `3m ago`, or `in 2h` for a future time; `never` without a time. */
export function when(iso: string | null, now: number): string {
  if (iso === null) return 'never'
  const off = Date.parse(iso) - now
  return off > 999 ? `in ${lengthText(off)}` : `${lengthText(-off)} ago`
}

/** Returns `Tue 2026-11-24 02:00 Europe/Berlin (in 1h)`, in the time zone of the reader; programs use --json. */
export function moment(iso: string, now: number, zone = Intl.DateTimeFormat().resolvedOptions().timeZone): string {
  return `${timeText(iso, zone)} (${when(iso, now)})`
}

/** Returns `1,200 tokens`; `no limit` without a number. */
export function tokensText(tokens: number | null): string {
  return tokens === null ? 'no limit' : `${grouped(tokens)} token${tokens === 1 ? '' : 's'}`
}
