/** Computes which budget day a moment belongs to: the local date in a time zone, and when that day begins and ends. */

export type BudgetDay = {
  /** YYYY-MM-DD */
  readonly day: string
  readonly beginsAt: number
  readonly endsAt: number
}

/** A day has 23 or 25 hours where the clocks change; where a day has no midnight it begins at its first moment. */
export function budgetDayOf(now: number, zone: string): BudgetDay {
  const local = Temporal.Instant.fromEpochMilliseconds(Math.floor(now)).toZonedDateTimeISO(zone)
  const begin = local.startOfDay()
  const date = begin.toPlainDate()
  return {
    day: date.toString(),
    beginsAt: begin.epochMilliseconds,
    endsAt: date.add({ days: 1 }).toZonedDateTime(zone).epochMilliseconds,
  }
}

/** The names of `count` days up to `day`, oldest first. */
export function daysUpTo(day: string, count: number): readonly string[] {
  const last = Temporal.PlainDate.from(day)
  return Array.from({ length: count }, (_, at) => last.subtract({ days: count - 1 - at }).toString())
}

/** Temporal would also take the zone out of a whole time, such as 2026-01-01T00:00[Europe/Berlin]. */
export function isTimeZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone })
    return true
  } catch {
    return false
  }
}
