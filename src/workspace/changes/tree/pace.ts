/** Lets the rest of the process run while many files are moved. */

/** Waits one turn of the event loop if this work has used its time; cheap to call for each file. */
export type Pace = () => Promise<void> | undefined

const SLICE_NS = 8_000_000

export function createPace(): Pace {
  let started = Bun.nanoseconds()
  return () => {
    if (Bun.nanoseconds() - started < SLICE_NS) return undefined
    return new Promise((resolve) =>
      setImmediate(() => {
        started = Bun.nanoseconds()
        resolve()
      }),
    )
  }
}
