/** Collects garbage in long loops, because otherwise the engine lets hundreds of megabytes accumulate. */

/** @returns a function to call once per item; it collects garbage at every `count`th call */
export function collectGarbageEvery(count: number): () => void {
  let seen = 0
  return () => {
    seen += 1
    if (seen % count === 0) Bun.gc(true)
  }
}
