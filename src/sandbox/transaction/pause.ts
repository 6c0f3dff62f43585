/** Splits long work into slices, so that the rest of the process goes on between them. */

export type Pause = () => Promise<void>

/** How long the event loop may wait, in milliseconds. */
const SLICE_MS = 4

/** @returns a function to await often: it waits only at the end of a slice */
export function createPause(): Pause {
  const state = { since: performance.now() }
  const done = Promise.resolve()
  const wait = async () => {
    await new Promise<void>((resolve) => setImmediate(resolve))
    state.since = performance.now()
  }
  return () => (performance.now() - state.since < SLICE_MS ? done : wait())
}
