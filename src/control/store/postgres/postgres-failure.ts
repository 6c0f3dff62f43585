/** Sorts the errors of PostgreSQL: try again, the database is away, or a bug. */

import { PlaneRefusal } from '../../contract/plane-refusal.ts'

export type PostgresFailure = {
  /** conflict: rolled back by the server, run it again. away: no connection, or the server ends. other: the statement or the disk. */
  readonly kind: 'conflict' | 'away' | 'other'
  readonly message: string
}

/** SQLSTATE of serialization failures, deadlocks and waits for locks that took too long. */
const conflicts = new Set(['40001', '40P01', '55P03'])
/** Connection exceptions, the server shutting down or starting, a session ended for idling in a transaction. */
const away = /^(?:08...|57P0[1-5]|25P03|53300)$/

export function postgresFailure(error: unknown): PostgresFailure | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  const state = 'errno' in error ? String(error.errno) : ''
  if (conflicts.has(state)) return { kind: 'conflict', message: error.message }
  if (away.test(state) || isConnectionError(String(error.code))) return { kind: 'away', message: error.message }
  return state === '' ? undefined : { kind: 'other', message: `${error.message} (SQLSTATE ${state})` }
}

/** Then nothing that was sent behind the statement has happened. */
export function isSaidByServer(error: unknown): boolean {
  return error instanceof Error && 'errno' in error && /^[0-9A-Z]{5}$/.test(String(error.errno))
}

function isConnectionError(code: string): boolean {
  return (
    /^ERR_POSTGRES_(?:CONNECTION|LIFETIME|IDLE|TLS)/.test(code) ||
    /^E(?:CONN|PIPE|TIMEDOUT|HOST|NET)/.test(code) ||
    code === 'FailedToOpenSocket'
  )
}

/** What a caller of the plane is told. Errors that are no failures of the database pass unchanged. */
export function asRefusal(error: unknown, target: string): unknown {
  const failure = error instanceof PlaneRefusal ? undefined : postgresFailure(error)
  if (!failure) return error
  if (failure.kind === 'other' && !/SQLSTATE (?:53|58)/.test(failure.message)) return error
  const what = failure.kind === 'conflict' ? 'is busy' : failure.kind === 'away' ? 'does not answer' : 'cannot write'
  const todo =
    failure.kind === 'conflict' ? 'try again' : 'check that PostgreSQL runs and has free disk space; requests succeed again by themselves'
  return new PlaneRefusal('unavailable', `database ${target} ${what} (${failure.message}); ${todo}`, {
    storage: failure.kind,
    retry_after_ms: 1_000,
  })
}
