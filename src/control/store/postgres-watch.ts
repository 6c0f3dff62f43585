/** Checks PostgreSQL every two seconds: whether it answers, what its clock shows, and whether an announcement was lost. */

import { atEnd } from '../../kit/errors.ts'

type PostgresWatchOptions = {
  readonly sql: { unsafe(text: string): PromiseLike<unknown> }
  readonly now: () => number
  readonly log: (level: 'info' | 'warn' | 'error', event: string, fields?: object) => void
  /** Called when events were written without an announcement. */
  readonly missed: () => void
  /** Called when a query gets no answer, since all other queries would wait as well. */
  readonly silent: () => void
  /** Called while the database answers and takes no writes. */
  readonly readOnly: () => void
}

const everyMs = 2_000
/** A working database never pauses for so long. */
const silentMs = 8_000
/** An answer that arrived while this process itself was stopped is read in this time. */
const readMs = 500
/** Clocks of one machine differ by less, and the time must not jump because a query took long. */
const sameClockMs = 250

const healthText = `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS at, (SELECT value FROM sequences WHERE name = 'events')::float8 AS events, (current_setting('transaction_read_only') = 'on')::int AS read_only`

type WatchState = {
  events: number
  isAnnounced: boolean
  isReachable: boolean
  isStopped: boolean
  skewMs: number
  timer?: ReturnType<typeof setTimeout>
}

export function watchPostgres({ sql, now, log, missed, silent, readOnly }: PostgresWatchOptions) {
  const state: WatchState = { events: 0, isAnnounced: false, isReachable: true, isStopped: false, skewMs: 0 }

  async function checkOnce(): Promise<void> {
    const before = now()
    const answer = await answered(sql.unsafe(healthText))
    const row: unknown = Array.isArray(answer) ? answer[0] : undefined
    const [at, events] = [numberIn(row, 'at'), numberIn(row, 'events')]
    const halfTrip = (now() - before) / 2
    compareClocks(at - before - halfTrip, halfTrip)
    if (events !== state.events && !state.isAnnounced) missed()
    state.events = events
    state.isAnnounced = false
    state.isReachable = true
    if (numberIn(row, 'read_only') === 1) readOnly()
  }

  async function answered(question: PromiseLike<unknown>): Promise<unknown> {
    const timers = [setTimeout(() => timers.push(setTimeout(silent, readMs)), silentMs)]
    using _end = atEnd(() => {
      for (const timer of timers) clearTimeout(timer)
    })
    return await question
  }

  /** An answer that took long, perhaps because this process was stopped meanwhile, says little about the clock. */
  function compareClocks(skew: number, halfTrip: number): void {
    const real = Math.abs(skew) < sameClockMs ? 0 : skew
    if (Math.abs(real - state.skewMs) < sameClockMs + halfTrip) return
    state.skewMs = Math.round(real)
    log('warn', 'the clock of this machine differs from the database, whose time counts', { skew_ms: state.skewMs })
  }

  function checkLater(): void {
    state.timer = setTimeout(() => void checkAgain(), everyMs)
  }

  async function checkAgain(): Promise<void> {
    await checkOnce().catch(() => {
      state.isReachable = false
    })
    if (!state.isStopped) checkLater()
  }

  async function start(): Promise<void> {
    await checkOnce()
    checkLater()
  }

  return {
    start,
    stop() {
      state.isStopped = true
      clearTimeout(state.timer)
    },
    /** Notes that an announcement arrived. */
    announced: () => void Object.assign(state, { isAnnounced: true }),
    answered: () => void Object.assign(state, { isReachable: true }),
    failed: () => void Object.assign(state, { isReachable: false }),
    isReachable: () => state.isReachable,
    skewMs: () => state.skewMs,
  }
}

function numberIn(row: unknown, column: string): number {
  return typeof row === 'object' && row !== null && column in row ? Number(Reflect.get(row, column)) : 0
}
