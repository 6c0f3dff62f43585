/** Commits the SQLite commands that were asked for in one turn of the event loop together. */

import type { LockWait } from '../../memory/write-lock.ts'

export type GroupCommit = {
  /** Resolves when the command is on disk. Rejects with its own error, or with that of the whole transaction. */
  add<T>(command: () => T): Promise<T>
}

export type GroupCommitOptions = {
  /** Runs `body` in one transaction that is on disk on return; throws when nothing was stored. */
  readonly transaction: <T>(body: () => T) => T
  /** Runs a command as a savepoint of that transaction. */
  readonly separate: <T>(command: () => T) => T
  /** Whether a transaction is open: a full disk ends it for all. */
  readonly isOpen: () => boolean
  readonly isLocked: (error: unknown) => boolean
  readonly lockWait: () => LockWait
}

type Waiting = { readonly run: () => () => void; readonly fail: (error: unknown) => void }

/** Small enough that the event loop answers others between two groups. */
const groupSize = 128
/** Of the event loop, while more commands come. */
const mostTurns = 4

export function createGroupCommit({ transaction, separate, isOpen, isLocked, lockWait }: GroupCommitOptions): GroupCommit {
  const waiting: Waiting[] = []
  const state: { locked?: LockWait | undefined } = {}

  function add<T>(command: () => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const run = () => {
      const value = command()
      return () => resolve(value)
    }
    if (waiting.push({ run, fail: reject }) === 1) setImmediate(gather, 0, 1)
    return promise
  }

  /** Requests that arrived together reach this point within a few turns; the others of them save a flush of the disk each. */
  function gather(seen: number, turns: number): void {
    if (waiting.length === seen || waiting.length >= groupSize || turns === mostTurns) commit()
    else setImmediate(gather, waiting.length, turns + 1)
  }

  function commit(): void {
    const group = waiting.slice(0, groupSize)
    const settle = outcome(group)
    if (!settle) return
    state.locked = undefined
    waiting.splice(0, group.length)
    if (waiting.length > 0) setImmediate(gather, 0, 1)
    settle()
  }

  /** @returns what settles the promises; undefined when another process writes, and the group is tried again. */
  function outcome(group: readonly Waiting[]): (() => void) | undefined {
    try {
      return all(stored(group))
    } catch (error) {
      if (isLocked(error) && tryLater()) return undefined
      return all(
        group.map(
          ({ fail }) =>
            () =>
              fail(error),
        ),
      )
    }
  }

  /** Commands seldom fail, and savepoints cost a tenth of a command: only a group with one that fails is run again with them. */
  function stored(group: readonly Waiting[]): readonly (() => void)[] {
    try {
      return transaction(() => group.map(({ run }) => run()))
    } catch (error) {
      if (group.length === 1 || isLocked(error)) throw error
      return transaction(() => group.map(alone))
    }
  }

  function alone({ run, fail }: Waiting): () => void {
    try {
      return separate(run)
    } catch (error) {
      if (!isOpen()) throw error
      return () => fail(error)
    }
  }

  function tryLater(): boolean {
    state.locked ??= lockWait()
    const ms = state.locked()
    if (ms !== undefined) setTimeout(commit, ms)
    return ms !== undefined
  }

  return { add }
}

function all(answers: readonly (() => void)[]): () => void {
  return () => {
    for (const answer of answers) answer()
  }
}
