/**
 * Runs a group of commands in one transaction: first those that may beside each other, whose statements share the way to the database; a group
 * in which one fails after it wrote is run again, one command after the other and each behind a savepoint.
 */

import type { Beside } from '../../contract/store-port.ts'
import { createTurns } from '../batch-marks.ts'
import { type During, isSaidByServer, postgresFailure, type Session } from './postgres-session.ts'

export type Waiting = {
  /** @returns what tells the caller, after the commit */
  readonly run: (session: Session, during: During) => Promise<() => void>
  readonly fail: (error: unknown) => void
  readonly beside: Beside | undefined
}

/** A command of the group failed and may have written: only savepoints can undo its part. */
export class HasFailed extends Error {}

/** The number of the advisory lock, which every daemon of a database must share. */
const WRITING = 3_100_001

type Answers = Promise<readonly (() => void)[]>

export type Transaction = {
  /** Resolves when this daemon is the one that writes. */
  begin(): Promise<void>
  /** @throws HasFailed */
  together(group: readonly Waiting[]): Answers
  separately(group: readonly Waiting[]): Answers
  /** Waits for what the commands and `own` sent last. */
  assertDone(own: Session): Promise<void>
}

export function createTransaction(session: () => Session, announced: (topic: string) => void): Transaction {
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
