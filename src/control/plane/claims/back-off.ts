/** Computes how long a failed task waits before it runs again. */

const baseMs = 2_000
const mostMs = 15 * 60_000

/** Full jitter: any time up to min(15 minutes, 2 s · 2^failures), so that tasks that failed together do not come back together. */
export function backOffMs(failures: number, random: () => number): number {
  return Math.floor(random() * Math.min(mostMs, baseMs * 2 ** failures))
}
