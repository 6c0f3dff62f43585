/** Waits for conditions: a fixed sleep is too short on a busy machine and too long on an idle one. */

/**
 * Looks every 10 ms, or with pauses of three times what a look takes, until the answer is neither undefined nor false, and returns it.
 * @throws after `ms`, which is a bound, not a measure
 */
export async function until<T>(look: () => T | Promise<T>, ms = 30_000): Promise<Exclude<T, undefined | false>> {
  for (const end = performance.now() + ms; performance.now() < end; ) {
    const begun = performance.now()
    const found = await look()
    if (found !== undefined && found !== false) return found as Exclude<T, undefined | false>
    await Bun.sleep(Math.max(10, 3 * (performance.now() - begun)))
  }
  throw new Error(`not within ${ms / 1_000} s: ${look}`)
}
