/**
 * Writes to PostgreSQL: the commands that wait are one transaction. All daemons write one after another, behind one advisory lock: events get
 * their ids in commit order anyway, and a command needs to fear nobody's changes between its statements.
 */

import type { Beside, Command } from '../contract/store-port.ts'
import { createTurns } from './batch-marks.ts'
import { type During, isSaidByServer, postgresFailure, type Session } from './postgres-session.ts'

type PostgresWriter = {
  write<T>(command: () => Command<T>, beside?: Beside): Promise<T>
  /** Resolves when nothing is being written. */
  idle(): Promise<void>
}

type PostgresWriterOptions = {
  /** Reserves the one connection for writing while `work` runs. */
  readonly reserved: <T>(work: (writing: Writing) => Promise<T>) => Promise<T>
  /** Adds what tells the other daemons, before the commit. */
  readonly notify: (session: Session, topics: ReadonlySet<string>) => void
  /** Tells this daemon's listeners, after the commit. */
  readonly told: (topics: ReadonlySet<string>) => void
  readonly random: () => number
}

/** Each command has a session of its own on the one connection. */
type Writing = { readonly session: () => Session; readonly commit: () => PromiseLike<unknown> }

const groupSize = 64
/** How long conflicts and lost connections before the commit are tried again. */
const tryAgainMs = 6_000

/** `group` is taken when the lock is held: whoever came while it was waited for is in it. */
type Attempt = { group?: readonly Waiting[]; isCommitting: boolean; isSeparate: boolean }

export function createPostgresWriter({ reserved, notify, told, random }: PostgresWriterOptions): PostgresWriter {
  const waiting: Waiting[] = []
  const state: { pumping?: Promise<void> | undefined } = {}
  const take = () => waiting.splice(0, groupSize)

  function write<T>(command: () => Command<T>, beside?: Beside): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const run: Waiting['run'] = async (own, during) => {
      const value = await own.follow(command(), during)
      return () => resolve(value)
    }
    waiting.push({ run, fail: reject, beside })
    state.pumping ??= pump()
    return promise
  }

  /** Everything that is asked while one group is written is the next group. */
  async function pump(): Promise<void> {
    await Promise.resolve()
    while (waiting.length > 0) await commitGroup()
    state.pumping = undefined
  }

  async function commitGroup(): Promise<void> {
    const attempt: Attempt = { isCommitting: false, isSeparate: false }
    const topics = new Set<string>()
    try {
      const settle = await tryAgain(attempt, topics)
      told(topics)
      for (const answer of settle) answer()
    } catch (error) {
      for (const { fail } of attempt.group ?? take()) fail(error)
    }
  }

  async function tryAgain(attempt: Attempt, topics: Set<string>): Promise<readonly (() => void)[]> {
    const end = performance.now() + tryAgainMs
    for (let tries = 1; ; tries += 1) {
      try {
        topics.clear()
        attempt.isCommitting = false
        return await reserved((writing) => once(writing, attempt, topics))
      } catch (error) {
        if (error instanceof HasFailed) attempt.isSeparate = true
        else if (performance.now() > end || !canRepeat(error, attempt.isCommitting)) throw error
        else await Bun.sleep(random() * Math.min(1_000, 50 * 2 ** tries))
      }
    }
  }

  async function once({ session, commit }: Writing, attempt: Attempt, topics: Set<string>): Promise<readonly (() => void)[]> {
    const own = session()
    const transaction = createTransaction(session, (topic) => topics.add(topic))
    try {
      await transaction.begin()
      attempt.group ??= take()
      const settle = await (attempt.isSeparate ? transaction.separately(attempt.group) : transaction.together(attempt.group))
      notify(own, topics)
      attempt.isCommitting = true
      // It goes out together with what the commands sent last; if one of these fails, the server makes a rollback of it.
      const [committed] = await Promise.allSettled([commit()])
      await transaction.assertDone(own).catch((error: unknown) => notDone(error, attempt))
      if (committed.status === 'rejected') throw committed.reason
      return settle
    } catch (error) {
      if (!attempt.isCommitting) await own.rows('ROLLBACK').catch(() => undefined)
      throw error
    }
  }

  return { write, idle: async () => await state.pumping }
}

/** Which command it was is found out by running them separately. Without a word of the server nobody knows how far it came. */
function notDone(error: unknown, attempt: Attempt): never {
  if (isSaidByServer(error)) attempt.isCommitting = false
  throw postgresFailure(error)?.kind === 'other' && !attempt.isSeparate ? new HasFailed() : error
}

/** After COMMIT was sent nobody knows whether it happened, unless the server says that it did not. */
function canRepeat(error: unknown, isCommitting: boolean): boolean {
  const kind = postgresFailure(error)?.kind
  return kind === 'conflict' || (kind === 'away' && !isCommitting)
}

/**
 * Runs a group of commands in one transaction: first those that may beside each other, whose statements share the way to the database; a group
 * in which one fails after it wrote is run again, one command after the other and each behind a savepoint.
 */
type Waiting = {
  /** @returns what tells the caller, after the commit */
  readonly run: (session: Session, during: During) => Promise<() => void>
  readonly fail: (error: unknown) => void
  readonly beside: Beside | undefined
}

/** A command of the group failed and may have written: only savepoints can undo its part. */
class HasFailed extends Error {}

/** The number of the advisory lock, which every daemon of a database must share. */
const WRITING = 3_100_001

type Answers = Promise<readonly (() => void)[]>

type Transaction = {
  /** Resolves when this daemon is the one that writes. */
  begin(): Promise<void>
  /** @throws HasFailed */
  together(group: readonly Waiting[]): Answers
  separately(group: readonly Waiting[]): Answers
  /** Waits for what the commands and `own` sent last. */
  assertDone(own: Session): Promise<void>
}

function createTransaction(session: () => Session, announced: (topic: string) => void): Transaction {
  const ended: Session[] = []

  async function begin(): Promise<void> {
    await session().rows(`BEGIN; SELECT pg_advisory_xact_lock(${WRITING})`)
  }

  async function together(group: readonly Waiting[]): Answers {
    const settle: (() => void)[] = []
    for (const batch of batchesOf(group)) {
      const turns = createTurns(batch.length)
      const outcomes = await Promise.allSettled(batch.map((one) => attempted(one, turns.alone).finally(turns.ended)))
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') throw outcome.reason
        settle.push(outcome.value)
      }
    }
    return settle
  }

  async function attempted({ run, fail }: Waiting, alone: () => Promise<void>): Promise<() => void> {
    const own = session()
    try {
      const answer = await run(own, { announced, alone })
      ended.push(own)
      return answer
    } catch (error) {
      const failure = postgresFailure(error)
      if (failure && failure.kind !== 'other') throw error
      if (failure || own.hasWritten()) throw new HasFailed()
      return () => fail(error)
    }
  }

  async function assertDone(own: Session): Promise<void> {
    const outcomes = await Promise.allSettled([...ended, own].map((one) => one.settled()))
    const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
    if (failures.length > 0) throw failures.find(isSaidByServer) ?? failures[0]
  }

  async function separately(group: readonly Waiting[]): Answers {
    const settle: (() => void)[] = []
    for (const one of group) settle.push(await behindSavepoint(one))
    return settle
  }

  /** What one command throws undoes only its own writes; what the database throws about the transaction ends the group. */
  async function behindSavepoint({ run, fail }: Waiting): Promise<() => void> {
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

/** Commands of one kind are one batch, as long as their keys differ; every other command is a batch by itself. */
function batchesOf(group: readonly Waiting[]): readonly (readonly Waiting[])[] {
  const batches: { readonly kind: string | undefined; readonly keys: Set<string>; readonly all: Waiting[] }[] = []
  for (const one of group) {
    const { kind, key = '' } = one.beside ?? {}
    const open = kind === undefined ? undefined : batches.find((batch) => batch.kind === kind && !batch.keys.has(key))
    if (open) {
      open.keys.add(key)
      open.all.push(one)
    } else batches.push({ kind, keys: new Set([key]), all: [one] })
  }
  return batches.map(({ all }) => all)
}
