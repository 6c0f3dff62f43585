/**
 * Gives each request its own abort signal: the library never removes its listeners, and a signal that lives for months would collect them.
 */

/** The own signal aborts when `signal` does. @returns what `request` returns */
export async function within<T>(signal: AbortSignal, request: (own: AbortSignal) => Promise<T>): Promise<T> {
  const own = new AbortController()
  const leave = () => own.abort(signal.reason)
  signal.addEventListener('abort', leave)
  if (signal.aborted) leave()
  try {
    return await request(own.signal)
  } finally {
    signal.removeEventListener('abort', leave)
  }
}
