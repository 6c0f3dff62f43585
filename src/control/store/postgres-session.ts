/** Runs commands on one PostgreSQL connection. A statement that returns no rows is sent together with the one after it, the last with COMMIT. */

import { errnoOf, errorText } from '../../kit/errors.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import type { Command, Param, Row } from '../contract/store-port.ts'
import { ANNOUNCE, EXCLUSIVE } from './batch-marks.ts'

/** The part of a Bun.SQL connection that the store uses. */
export type PostgresConnection = { unsafe(text: string, values?: unknown[]): PromiseLike<unknown> }
/** `commit` is sent at once, behind the statements before it; `unsafe('COMMIT')` would wait for their answers. */
export type ReservedConnection = PostgresConnection & { commit(): PromiseLike<unknown> }

export type Session = {
  /** Sends without waiting: if the statement fails, the next `rows` or `settled` rejects. */
  send(sql: string, params?: readonly Param[]): void
  rows(sql: string, params?: readonly Param[]): Promise<readonly Row[]>
  /** Waits for everything that was sent. */
  settled(): Promise<void>
  /** Tells whether anything was sent that may have changed rows. */
  hasWritten(): boolean
  /** Runs a command to its end. Its last statements may still be running. */
  follow<T>(command: Command<T>, during?: CommandHooks): Promise<T>
}

export type CommandHooks = {
  readonly announced?: (topic: string) => void
  /** Resolves when the others of the command's batch have ended. */
  readonly exclusive?: () => Promise<void>
}

export function createSession(connection: PostgresConnection, textOf: (sql: string) => string): Session {
  let sent: PromiseLike<unknown>[] = []
  let hasWritten = false

  function query(sql: string, params: readonly Param[]): PromiseLike<unknown> {
    hasWritten ||= !/^\s*SELECT\b/i.test(sql)
    const answer = Promise.resolve(connection.unsafe(textOf(sql), [...params]))
    // `rows` or `settled` rejects with the error later; until then it must not count as unhandled.
    answer.catch(() => undefined)
    return answer
  }

  function send(sql: string, params: readonly Param[] = []): void {
    sent.push(query(sql, params))
  }

  async function settled(): Promise<void> {
    const waiting = sent
    sent = []
    const outcomes = await Promise.allSettled(waiting)
    // After the first error the others only report that the transaction is aborted.
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
  }

  async function rows(sql: string, params: readonly Param[] = []): Promise<readonly Row[]> {
    const answer = query(sql, params)
    await settled()
    return rowsOf(await answer)
  }

  async function follow<T>(command: Command<T>, { announced, exclusive }: CommandHooks = {}): Promise<T> {
    for (let step = command.next([]); ; ) {
      if (step.done) return step.value
      const [sql, params = []] = step.value
      if (answersRows(sql)) step = command.next(await rows(sql, params))
      else {
        if (sql === ANNOUNCE) announced?.(String(params[0]))
        else if (sql === EXCLUSIVE) await exclusive?.()
        else send(sql, params)
        // Continues without a pause, so that no statement of another command comes in between.
        step = command.next([])
      }
    }
  }

  return { send, rows, settled, hasWritten: () => hasWritten, follow }
}

function answersRows(sql: string): boolean {
  return /^\s*(?:SELECT|WITH)\b/i.test(sql) || /\bRETURNING\b/i.test(sql)
}

/** Converts rows. int8 arrives as bigint; our numbers are all below 2^53. */
function rowsOf(answer: unknown): readonly Row[] {
  if (!Array.isArray(answer)) return []
  return answer.map((row: Record<string, unknown>) => {
    const plain: Record<string, string | number | null> = {}
    for (const [name, value] of Object.entries(row)) plain[name] = plainOf(value)
    return plain
  })
}

function plainOf(value: unknown): string | number | null {
  if (typeof value === 'bigint') return Number(value)
  if (typeof value === 'string' || typeof value === 'number') return value
  return value === null || value === undefined ? null : String(value)
}

type PostgresFailure = {
  /** conflict: the server rolled back, run it again. away: no connection, or the server ends. other: the statement or the disk. */
  readonly kind: 'conflict' | 'away' | 'other'
  readonly message: string
}

/** Lists the SQLSTATE of serialization failures, deadlocks and waits for locks that took too long. */
const conflicts = new Set(['40001', '40P01', '55P03'])
/** Matches connection exceptions, a server that stops or starts, and a session that ended because it was idle in a transaction. */
const away = /^(?:08...|57P0[1-5]|25P03|53300)$/

export function postgresFailure(error: unknown): PostgresFailure | undefined {
  const code = errnoOf(error)
  if (code === undefined) return undefined
  const [state, message] = [sqlStateOf(error), errorText(error)]
  if (conflicts.has(state)) return { kind: 'conflict', message }
  if (away.test(state) || isConnectionError(code)) return { kind: 'away', message }
  return state === '' ? undefined : { kind: 'other', message: `${message} (SQLSTATE ${state})` }
}

/** Tells whether the server itself reports the error: then no statement behind it has happened. */
export function isSaidByServer(error: unknown): boolean {
  return /^[0-9A-Z]{5}$/.test(sqlStateOf(error))
}

function sqlStateOf(error: unknown): string {
  return error instanceof Error && 'errno' in error ? String(error.errno) : ''
}

function isConnectionError(code: string): boolean {
  return (
    /^ERR_POSTGRES_(?:CONNECTION|LIFETIME|IDLE|TLS)/.test(code) ||
    /^E(?:CONN|PIPE|TIMEDOUT|HOST|NET)/.test(code) ||
    code === 'FailedToOpenSocket'
  )
}

/** Returns the refusal for a caller of the plane. Errors that are not failures of the database pass unchanged. */
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
