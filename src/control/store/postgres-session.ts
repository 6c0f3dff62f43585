/** Runs commands on one PostgreSQL connection. A statement that returns no rows is sent together with the one after it, the last with COMMIT. */

import { causeOf, errnoOf, errorText } from '../../kit/errors.ts'
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
  if (state === '') return isClientError(code) ? { kind: 'other', message } : undefined
  return { kind: 'other', message: `${message} (SQLSTATE ${state})` }
}

/** Matches what Bun says about logging in, encryption and files that the URL names; its other codes are about our calls. */
function isClientError(code: string): boolean {
  return /^ERR_POSTGRES_.*(?:CHANNEL_BINDING|TLS|SSL|AUTHENTICATION|PASSWORD|SASL)|^(?:ERR_INVALID_ARG|ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(
    code,
  )
}

/** Tells whether the server itself reports the error: then no statement behind it has happened. */
export function isSaidByServer(error: unknown): boolean {
  return /^[0-9A-Z]{5}$/.test(sqlStateOf(error))
}

function sqlStateOf(thrown: unknown): string {
  const error = causeOf(thrown)
  return error instanceof Error && 'errno' in error ? String(error.errno) : ''
}

function isConnectionError(code: string): boolean {
  return (
    /^ERR_POSTGRES_(?:CONNECTION|LIFETIME|IDLE|TLS)/.test(code) ||
    /^E(?:CONN|PIPE|TIMEDOUT|HOST|NET)/.test(code) ||
    code === 'FailedToOpenSocket'
  )
}

/** Lists the states that say something about our own SQL: those stay bugs, and every other one is about the database. */
const ofOurSql = /^(?:0A|2[1346]|22(?!023)|42(?!501|P01|704))/
const setting = 'CONTROLPLANE_DATABASE_URL'

/** Says what happened and what to do, by the SQLSTATE or else the code of Bun; the first that matches counts. */
const advice: readonly (readonly [RegExp, what: string, todo: string])[] = [
  [/^(?:40001|40P01|55P03)$/, 'is busy', 'try again'],
  [/^25006/, 'is read-only', `make it writable, or name the primary server in ${setting}; requests succeed again by themselves`],
  [/^28/, 'refuses the log-in', `check the user and the password in ${setting}, and pg_hba.conf of the server`],
  [/^3D/, 'does not exist', `create it with "createdb", or correct the name in ${setting}`],
  [/^42501/, 'refuses a right to the user', 'grant it: the user needs USAGE and CREATE on the schema, and owns the tables'],
  [/^(?:42704$|22023$|ERR_INVALID_ARG)/, 'does not accept a parameter', `correct what stands behind "?" in ${setting}`],
  [/^57014/, 'cancelled a statement', 'try again; an administrator ended it, or it took longer than the limit'],
  [/^5[38]/, 'cannot write', 'check its free disk space, memory and limit of connections; requests succeed again by themselves'],
  [
    /TLS|SSL|CERT|CHANNEL_BINDING|SIGNATURE/,
    'does not offer the encryption that the URL demands',
    `set up TLS at the server, or write another sslmode, sslrootcert or channel_binding in ${setting}`,
  ],
  [/AUTHENTICATION|PASSWORD|SASL/, 'refuses the log-in', `check the user and the password in ${setting}, and pg_hba.conf of the server`],
]
const awayTodo = 'check that PostgreSQL runs and has free disk space; requests succeed again by themselves'

/** Names a database, and hides the password of its URL in a text. */
export type PostgresTarget = { readonly name: string; readonly hide: (text: string) => string }

/** Returns the refusal for a caller of the plane. Errors that are not failures of the database pass unchanged. */
export function asRefusal(thrown: unknown, { name, hide }: PostgresTarget): unknown {
  const error = causeOf(thrown)
  const failure = error instanceof PlaneRefusal ? undefined : postgresFailure(error)
  if (!failure || ofOurSql.test(sqlStateOf(error))) return error
  const key = sqlStateOf(error) || (errnoOf(error) ?? '')
  const [, what = 'does not answer', todo = awayTodo] =
    advice.find(([pattern]) => pattern.test(key)) ??
    (failure.kind === 'away' ? [] : [key, 'reports an error', "look into the server's log, and try again"])
  const details = { storage: key === '25006' ? 'read_only' : failure.kind, retry_after_ms: 1_000 }
  return new PlaneRefusal('unavailable', `database ${name} ${what} (${hide(failure.message)}); ${todo}`, details)
}
