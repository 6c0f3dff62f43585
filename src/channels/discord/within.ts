/** A signal for one request: the library listens to it and never stops, and one that lives for months would keep every listener. */

/** Aborted when `signal` is. @returns what `request` returns */
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
