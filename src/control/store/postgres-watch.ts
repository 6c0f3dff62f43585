/** Looks at PostgreSQL every two seconds: whether it answers, what its clock says, and whether an announcement was lost. */

export type PostgresWatch = {
  start(): Promise<void>
  stop(): void
  /** An announcement arrived. */
  heard(): void
  answered(): void
  failed(): void
  isReachable(): boolean
  skewMs(): number
}

export type PostgresWatchOptions = {
  readonly sql: { unsafe(text: string): PromiseLike<unknown> }
  readonly now: () => number
  readonly log: (level: 'info' | 'warn' | 'error', event: string, fields?: object) => void
  /** Events were written and nobody announced them. */
  readonly missed: () => void
  /** It took the question and does not answer: everybody else would wait as well. */
  readonly silent: () => void
}

const everyMs = 2_000
/** Longer than any pause of a database that works. */
const silentMs = 8_000
/** For an answer that arrived while this process itself was stopped. */
const readMs = 500
/** Clocks of one machine differ by less, and time must not jump because a query took long. */
const sameClockMs = 250

const look = `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS at, (SELECT value FROM sequences WHERE name = 'events')::float8 AS events`

type State = {
  events: number
  hasHeard: boolean
  isReachable: boolean
  isStopped: boolean
  skewMs: number
  timer?: ReturnType<typeof setTimeout>
}

export function watchPostgres({ sql, now, log, missed, silent }: PostgresWatchOptions): PostgresWatch {
  const state: State = { events: 0, hasHeard: false, isReachable: true, isStopped: false, skewMs: 0 }

  async function lookOnce(): Promise<void> {
    const before = now()
    const answer = await answered(sql.unsafe(look))
    const row: unknown = Array.isArray(answer) ? answer[0] : undefined
    const [at, events] = [numberIn(row, 'at'), numberIn(row, 'events')]
    compareClocks(at - (before + now()) / 2)
    if (events !== state.events && !state.hasHeard) missed()
    state.events = events
    state.hasHeard = false
    state.isReachable = true
  }

  async function answered(question: PromiseLike<unknown>): Promise<unknown> {
    const timers = [setTimeout(() => timers.push(setTimeout(silent, readMs)), silentMs)]
    try {
      return await question
    } finally {
      for (const timer of timers) clearTimeout(timer)
    }
  }

  function compareClocks(skew: number): void {
    const real = Math.abs(skew) < sameClockMs ? 0 : skew
    if (Math.abs(real - state.skewMs) < sameClockMs) return
    state.skewMs = Math.round(real)
    log('warn', 'the clock of this machine differs from the database, whose time counts', { skew_ms: state.skewMs })
  }

  function lookLater(): void {
    state.timer = setTimeout(() => void lookAgain(), everyMs)
  }

  async function lookAgain(): Promise<void> {
    await lookOnce().catch(() => {
      state.isReachable = false
    })
    if (!state.isStopped) lookLater()
  }

  async function start(): Promise<void> {
    await lookOnce()
    lookLater()
  }

  return {
    start,
    stop: () => {
      state.isStopped = true
      clearTimeout(state.timer)
    },
    heard: () => {
      state.hasHeard = true
    },
    answered: () => {
      state.isReachable = true
    },
    failed: () => {
      state.isReachable = false
    },
    isReachable: () => state.isReachable,
    skewMs: () => state.skewMs,
  }
}

function numberIn(row: unknown, column: string): number {
  return typeof row === 'object' && row !== null && column in row ? Number(Reflect.get(row, column)) : 0
}
