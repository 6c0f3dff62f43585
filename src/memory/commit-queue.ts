/** Group commit: what is asked for within one turn of the event loop becomes one transaction, and nobody hears of it before it is on disk. */

import type { LockWait } from './write-lock.ts'

export type CommitQueue = {
  /** Resolves with what the step returned once its transaction is on disk. Rejects with what the step threw, or what ended the whole group. */
  add<T>(step: () => T): Promise<T>
}

export type CommitQueueOptions = {
  /** Runs `body` in one transaction, on disk when it returns; throws when nothing of it was kept. */
  readonly transaction: <T>(body: () => T) => T
  /** Runs `step` within that transaction: if it throws, the step has left nothing behind, and the others may go on. */
  readonly separate: <T>(step: () => T) => T
  /** Whether this error of one step must end the whole group: the disk is full, say. */
  readonly endsGroup: (error: unknown) => boolean
  /** Whether `transaction` threw this because another process writes; nothing was done then, and it may be tried again. */
  readonly isLocked: (error: unknown) => boolean
  readonly lockWait: () => LockWait
}

type Waiting = { readonly run: () => () => void; readonly fail: (error: unknown) => void }

/** Other processes get their turn between two groups. */
const groupSize = 64

export function createCommitQueue({ transaction, separate, endsGroup, isLocked, lockWait }: CommitQueueOptions): CommitQueue {
  let waiting: Waiting[] = []
  /** While another process writes. What is asked for meanwhile joins the group. */
  let locked: LockWait | undefined

  function add<T>(step: () => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const run = () => {
      const value = step()
      return () => resolve(value)
    }
    if (waiting.push({ run, fail: reject }) === 1) setImmediate(commit)
    return promise
  }

  function commit(): void {
    const group = waiting.slice(0, groupSize)
    const settle = outcome(group)
    if (settle === undefined) return
    locked = undefined
    waiting = waiting.slice(group.length)
    if (waiting.length > 0) setImmediate(commit)
    settle()
  }

  /** @returns what tells those who asked; undefined when it is to be tried again. */
  function outcome(group: readonly Waiting[]): (() => void) | undefined {
    try {
      const answers = transaction(() => (group.length === 1 ? group.map(({ run }) => run()) : group.map(alone)))
      return () => {
        for (const answer of answers) answer()
      }
    } catch (error) {
      if (isLocked(error) && tryLater()) return undefined
      return () => {
        for (const { fail } of group) fail(error)
      }
    }
  }

  function tryLater(): boolean {
    locked ??= lockWait()
    const ms = locked()
    if (ms !== undefined) setTimeout(commit, ms)
    return ms !== undefined
  }

  /** A step that fails for a reason of its own does so alone. */
  function alone({ run, fail }: Waiting): () => void {
    try {
      return separate(run)
    } catch (error) {
      if (endsGroup(error)) throw error
      return () => fail(error)
    }
  }

  return { add }
}
