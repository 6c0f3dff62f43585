/** How long to wait for the write lock of the database while other processes hold it: fair among many, and not for ever behind one. */

export type LockWaitOptions = {
  /** A number that changes whenever another process has committed. */
  readonly version: () => number
  /** Give up when nobody has committed for so long: one process holds the lock and does not let go. In milliseconds. */
  readonly stuckMs: number
  /** Monotonic, in milliseconds. */
  readonly now: () => number
  readonly random: () => number
}

/** @returns for how many milliseconds to wait before the next try; undefined: give up. */
export type LockWait = () => number | undefined

/** However busy the others are: longer than any crowd that one machine could serve. */
const longestMs = 120_000
const lookMs = 500

/**
 * SQLite's own waiting looks every 100 ms in the end, always at the same distance, and gives up after a fixed time however briskly the others
 * go on. Here the times are random, so that everybody has the same chance, and it goes on as long as the others do.
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
