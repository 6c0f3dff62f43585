/** Groups the steps of one turn of the event loop into one transaction; callers resume only after it is on disk. */

export type CommitQueue = {
  /** Resolves with the step's result once its transaction is on disk. Rejects with the error of the step or of the whole group. */
  add<T>(step: () => T): Promise<T>
}

type CommitQueueOptions = {
  /** Runs `body` in one transaction that is on disk on return; throws when nothing was stored. */
  readonly transaction: <T>(body: () => T) => T
  /** Runs `step` as a savepoint of that transaction: if it throws, its changes are undone and other steps continue. */
  readonly separate: <T>(step: () => T) => T
  /** Tells whether this error of one step must end the whole group, such as a full disk. */
  readonly endsGroup: (error: unknown) => boolean
  /** Tells whether `transaction` threw because another process writes; nothing happened, and it can be retried. */
  readonly isLocked: (error: unknown) => boolean
  readonly lockWait: () => LockWait
  /** Small enough that other processes can write, and the event loop answers others, between two groups. */
  readonly groupSize?: number
  /** The number of turns of the event loop for which a group waits for more steps, as long as more come. */
  readonly turns?: number
  /** Runs a group without savepoints first: where steps seldom fail, only a group with one that fails is run again with them. */
  readonly together?: boolean
}

type QueuedStep = { readonly run: () => () => void; readonly fail: (error: unknown) => void }

export function createCommitQueue(options: CommitQueueOptions): CommitQueue {
  const { transaction, separate, endsGroup, isLocked, lockWait, groupSize = 64, turns = 1, together = false } = options
  let waiting: QueuedStep[] = []
  /** Set while another process writes. Steps added meanwhile join the group. */
  let locked: LockWait | undefined

  function add<T>(step: () => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const run = () => {
      const value = step()
      return () => resolve(value)
    }
    if (waiting.push({ run, fail: reject }) === 1) setImmediate(gather, 0, 1)
    return promise
  }

  /** Steps that were asked for together arrive within a few turns; the others of them save a flush of the disk each. */
  function gather(seen: number, turn: number): void {
    if (waiting.length === seen || waiting.length >= groupSize || turn === turns) commit()
    else setImmediate(gather, waiting.length, turn + 1)
  }

  function commit(): void {
    const group = waiting.slice(0, groupSize)
    const settle = outcome(group)
    if (settle === undefined) return
    locked = undefined
    waiting = waiting.slice(group.length)
    if (waiting.length > 0) setImmediate(gather, 0, 1)
    settle()
  }

  /** @returns a function that settles the promises; undefined when the group must be retried. */
  function outcome(group: readonly QueuedStep[]): (() => void) | undefined {
    try {
      const answers = stored(group)
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

  function stored(group: readonly QueuedStep[]): readonly (() => void)[] {
    try {
      if (together || group.length === 1) return transaction(() => group.map(({ run }) => run()))
    } catch (error) {
      if (group.length === 1 || isLocked(error)) throw error
    }
    return transaction(() => group.map(separately))
  }

  function tryLater(): boolean {
    locked ??= lockWait()
    const ms = locked()
    if (ms !== undefined) setTimeout(commit, ms)
    return ms !== undefined
  }

  /** A step that fails for its own reason does not affect the others. */
  function separately({ run, fail }: QueuedStep): () => void {
    try {
      return separate(run)
    } catch (error) {
      if (endsGroup(error)) throw error
      return () => fail(error)
    }
  }

  return { add }
}

/** Computes how long to wait for the database's write lock: fair among many processes, and limited behind a stuck one. */
type LockWaitOptions = {
  /** A number that changes whenever another process has committed. */
  readonly version: () => number
  /** Give up when nobody has committed for this long, because one process then holds the lock without releasing it. In milliseconds. */
  readonly stuckMs: number
  /** Monotonic, in milliseconds. */
  readonly now: () => number
  readonly random: () => number
}

/** @returns how many milliseconds to wait before the next try; undefined: give up. */
export type LockWait = () => number | undefined

/** The limit however busy the others are: longer than any queue that one machine could serve. */
const longestMs = 120_000
const checkMs = 500

/**
 * SQLite's own waiting ends up trying every 100 ms, at fixed intervals, and gives up after a fixed time even if others make progress. Here
 * the intervals are random, so that every process has an equal chance, and waiting continues while others commit.
 */
export function createLockWait({ version, stuckMs, now, random }: LockWaitOptions): LockWait {
  const begun = now()
  const seen = { version: version(), changed: begun, checked: begun }
  let tries = 0

  function check(at: number): void {
    const current = version()
    if (current !== seen.version) seen.changed = at
    seen.version = current
    seen.checked = at
  }

  return () => {
    const at = now()
    if (at - seen.checked >= Math.min(checkMs, stuckMs / 2)) check(at)
    if (at - seen.changed >= stuckMs || at - begun >= longestMs) return undefined
    tries += 1
    return 0.5 + Math.min(2 ** tries, 100) * random()
  }
}
