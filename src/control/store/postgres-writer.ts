/**
 * Writes to PostgreSQL: the waiting commands form one transaction. All daemons write one after another, behind one advisory lock: events get
 * their ids in commit order anyway, and no other daemon changes anything between the statements of a command.
 */

import type { BatchKey, Command } from '../contract/store-port.ts'
import { createTurns } from './batch-marks.ts'
import { type CommandHooks, isSaidByServer, postgresFailure, type Session } from './postgres-session.ts'

type PostgresWriterOptions = {
  /** Reserves the one connection for writing while `work` runs. */
  readonly reserved: <T>(work: (writing: WriteConnection) => Promise<T>) => Promise<T>
  /** Adds what notifies the other daemons, before the commit. */
  readonly notify: (session: Session, topics: ReadonlySet<string>) => void
  /** Notifies this daemon's listeners, after the commit. */
  readonly notifyListeners: (topics: ReadonlySet<string>) => void
  readonly random: () => number
}

/** Each command has a session of its own on the one connection. */
type WriteConnection = { readonly session: () => Session; readonly commit: () => PromiseLike<unknown> }

const groupSize = 64
/** Conflicts and lost connections before the commit are retried for this long. */
const retryMs = 6_000

/** `group` is set once the lock is held, so it includes the commands that came while the lock was awaited. */
type GroupAttempt = {
  group?: readonly QueuedCommand[]
  isCommitting: boolean
  isSeparate: boolean
  /** Names the transaction to the server, and answers its commands once it is known to be committed. */
  id?: string
  settle?: readonly (() => void)[]
}

export function createPostgresWriter({ reserved, notify, notifyListeners, random }: PostgresWriterOptions) {
  const waiting: QueuedCommand[] = []
  const state: { pumping?: Promise<void> | undefined } = {}
  const take = () => waiting.splice(0, groupSize)

  function write<T>(command: () => Command<T>, batchKey?: BatchKey): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const run: QueuedCommand['run'] = async (own, during) => {
      const value = await own.follow(command(), during)
      return () => resolve(value)
    }
    waiting.push({ run, fail: reject, batchKey })
    state.pumping ??= pump()
    return promise
  }

  /** Writes groups, each of the commands that came while the one before was written. */
  async function pump(): Promise<void> {
    await Promise.resolve()
    while (waiting.length > 0) await commitGroup()
    state.pumping = undefined
  }

  async function commitGroup(): Promise<void> {
    const attempt: GroupAttempt = { isCommitting: false, isSeparate: false }
    const topics = new Set<string>()
    try {
      const settle = await commitWithRetry(attempt, topics)
      notifyListeners(topics)
      for (const answer of settle) answer()
    } catch (error) {
      for (const { fail } of attempt.group ?? take()) fail(error)
    }
  }

  async function commitWithRetry(attempt: GroupAttempt, topics: Set<string>): Promise<readonly (() => void)[]> {
    const end = performance.now() + retryMs
    for (let tries = 1; ; tries += 1) {
      try {
        topics.clear()
        attempt.isCommitting = false
        return await reserved((writing) => runGroup(writing, attempt, topics))
      } catch (error) {
        if (error instanceof HasFailed) attempt.isSeparate = true
        else if (attempt.isCommitting && attempt.id && postgresFailure(error)?.kind === 'away') {
          const fate = await fateOf(attempt.id)
          if (fate === 'committed' && attempt.settle) return attempt.settle
          if (fate !== 'aborted') throw error
        } else if (performance.now() > end || !canRepeat(error, attempt.isCommitting)) throw error
        else await Bun.sleep(random() * Math.min(1_000, 50 * 2 ** tries))
      }
    }
  }

  async function runGroup(
    { session, commit }: WriteConnection,
    attempt: GroupAttempt,
    topics: Set<string>,
  ): Promise<readonly (() => void)[]> {
    const own = session()
    const transaction = createTransaction(session, (topic) => topics.add(topic))
    try {
      attempt.id = await transaction.begin()
      attempt.group ??= take()
      const settle = await (attempt.isSeparate ? transaction.separately(attempt.group) : transaction.together(attempt.group))
      notify(own, topics)
      attempt.settle = settle
      attempt.isCommitting = true
      // COMMIT is sent together with the last statements of the commands; if one of them fails, the server rolls back instead.
      const [committed] = await Promise.allSettled([commit()])
      await transaction.assertDone(own).catch((error: unknown) => throwNotDone(error, attempt))
      if (committed.status === 'rejected') throw committed.reason
      return settle
    } catch (error) {
      if (!attempt.isCommitting) await own.rows('ROLLBACK').catch(() => undefined)
      throw error
    }
  }

  /** Asks the server whether a transaction whose COMMIT was not answered has happened. @returns undefined when it does not answer in time */
  async function fateOf(id: string): Promise<string | undefined> {
    for (const end = performance.now() + retryMs; performance.now() < end; await Bun.sleep(100 + random() * 200)) {
      const asked = reserved(({ session }) => session().rows('SELECT txid_status(CAST(? AS bigint)) AS fate', [id]))
      const fate = await asked.then(
        ([row]) => row?.fate ?? 'unknown',
        (error: unknown) => (postgresFailure(error)?.kind === 'away' ? 'in progress' : 'unknown'),
      )
      if (fate !== 'in progress') return String(fate)
    }
    return undefined
  }

  /** Resolves when no command is being written. */
  const idle = async () => await state.pumping
  return { write, idle }
}

/** Runs the commands separately to find the failing one. Without an answer of the server nobody knows how far it came. */
function throwNotDone(error: unknown, attempt: GroupAttempt): never {
  if (isSaidByServer(error)) attempt.isCommitting = false
  throw postgresFailure(error)?.kind === 'other' && !attempt.isSeparate ? new HasFailed() : error
}

/** Refuses a repeat once COMMIT was sent and may have happened, unless the server reports that it did not. */
function canRepeat(error: unknown, isCommitting: boolean): boolean {
  const kind = postgresFailure(error)?.kind
  return kind === 'conflict' || (kind === 'away' && !isCommitting)
}

/**
 * Holds a command until its group runs. One transaction runs the group: first in batches whose statements share the way to the database; a
 * group in which a command fails after it wrote runs again, one command after the other, each behind a savepoint.
 */
type QueuedCommand = {
  /** @returns a function that tells the caller, after the commit */
  readonly run: (session: Session, during: CommandHooks) => Promise<() => void>
  readonly fail: (error: unknown) => void
  readonly batchKey: BatchKey | undefined
}

/** Reports that a command of the group failed and may have written: only savepoints can undo its part. */
class HasFailed extends Error {}

/** Every daemon of a database must use this number for the advisory lock. */
const WRITING = 3_100_001

type Answers = Promise<readonly (() => void)[]>

function createTransaction(session: () => Session, announced: (topic: string) => void) {
  const ended: Session[] = []

  /** Resolves when this daemon is the one that writes. @returns the id of the transaction */
  async function begin(): Promise<string | undefined> {
    const own = session()
    own.send('BEGIN')
    const [row] = await own.rows(`SELECT pg_advisory_xact_lock(${WRITING}), txid_current()::text AS id`)
    return row?.id == null ? undefined : String(row.id)
  }

  /** @throws HasFailed */
  async function together(group: readonly QueuedCommand[]): Answers {
    const settle: (() => void)[] = []
    for (const batch of batchesOf(group)) {
      const turns = createTurns(batch.length)
      const outcomes = await Promise.allSettled(batch.map((one) => tryCommand(one, turns.exclusive).finally(turns.ended)))
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') throw outcome.reason
        settle.push(outcome.value)
      }
    }
    return settle
  }

  async function tryCommand({ run, fail }: QueuedCommand, exclusive: () => Promise<void>): Promise<() => void> {
    const own = session()
    try {
      const answer = await run(own, { announced, exclusive })
      ended.push(own)
      return answer
    } catch (error) {
      const failure = postgresFailure(error)
      if (failure && failure.kind !== 'other') throw error
      if (failure || own.hasWritten()) throw new HasFailed()
      return () => fail(error)
    }
  }

  /** Waits for the last statements of the commands and of `own`. */
  async function assertDone(own: Session): Promise<void> {
    const outcomes = await Promise.allSettled([...ended, own].map((one) => one.settled()))
    const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
    if (failures.length > 0) throw failures.find(isSaidByServer) ?? failures[0]
  }

  /** Runs one command after the other: Array.fromAsync awaits each. */
  const separately = (group: readonly QueuedCommand[]): Answers => Array.fromAsync(group, behindSavepoint)

  /** Undoes only the writes of a command that throws; an error of the database about the transaction ends the group. */
  async function behindSavepoint({ run, fail }: QueuedCommand): Promise<() => void> {
    const own = session()
    const topics: string[] = []
    await own.rows('SAVEPOINT command')
    try {
      const answer = await run(own, { announced: (topic) => topics.push(topic) })
      await own.rows('RELEASE command')
      for (const topic of topics) announced(topic)
      return answer
    } catch (error) {
      const failure = postgresFailure(error)
      if (failure && failure.kind !== 'other') throw error
      await own.settled().catch(() => undefined)
      await own.rows('ROLLBACK TO command')
      return () => fail(error)
    }
  }

  return { begin, together, separately, assertDone }
}

/** Puts commands of one kind into one batch, as long as their keys differ; every other command is a batch by itself. */
function batchesOf(group: readonly QueuedCommand[]): readonly (readonly QueuedCommand[])[] {
  const batches: { readonly kind: string | undefined; readonly keys: Set<string>; readonly all: QueuedCommand[] }[] = []
  for (const one of group) {
    const { kind, key = '' } = one.batchKey ?? {}
    const open = kind === undefined ? undefined : batches.find((batch) => batch.kind === kind && !batch.keys.has(key))
    if (open) {
      open.keys.add(key)
      open.all.push(one)
    } else batches.push({ kind, keys: new Set([key]), all: [one] })
  }
  return batches.map(({ all }) => all)
}
