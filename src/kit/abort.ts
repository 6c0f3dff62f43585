/** Waits for time, for a signal, or for work within a time. */

/** Resolves after `ms`, or at once when the signal aborts. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    if (signal.aborted) done()
    else signal.addEventListener('abort', done, { once: true })
  })
}

/** Calls a function after `ms`. @returns a function that prevents it */
export function after(ms: number, then: () => void): () => void {
  const timer = setTimeout(then, ms)
  return () => clearTimeout(timer)
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true })))
}

/** Resolves with the value of the work, or with undefined after `ms`; the work itself continues. @throws what the work throws in time */
export async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined
  try {
    return await Promise.race([work, new Promise<undefined>((resolve) => (timer = setTimeout(resolve, ms, undefined)))])
  } finally {
    clearTimeout(timer)
  }
}
