/** Computes how long to wait for the database's write lock: fair among many processes, and limited behind a stuck one. */

export type LockWaitOptions = {
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
const lookMs = 500

/**
 * SQLite's own waiting ends up trying every 100 ms, at fixed intervals, and gives up after a fixed time even if others make progress. Here
 * the intervals are random, so that every process has an equal chance, and waiting continues while others commit.
 */
export function createLockWait({ version, stuckMs, now, random }: LockWaitOptions): LockWait {
  const begun = now()
  const seen = { version: version(), changed: begun, looked: begun }
  let tries = 0

  function look(at: number): void {
    const current = version()
    if (current !== seen.version) seen.changed = at
    seen.version = current
    seen.looked = at
  }

  return () => {
    const at = now()
    if (at - seen.looked >= Math.min(lookMs, stuckMs / 2)) look(at)
    if (at - seen.changed >= stuckMs || at - begun >= longestMs) return undefined
    tries += 1
    return 0.5 + Math.min(2 ** tries, 100) * random()
  }
}
