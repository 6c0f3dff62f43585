/** Reads a thrown value (its message, its trace, its system code), and does what may fail, or what is due even after a failure. */

/** Returns the trace of an error for a log, with its message, which the traces of some errors leave out. */
export function traceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { stack = '', message } = error
  return stack.includes(message) ? stack : `${stack}: ${message}`
}

/** Returns the message of an error, or the text of any other thrown value. */
export function errorText(thrown: unknown): string {
  const error = causeOf(thrown)
  return error instanceof Error ? error.message : String(error)
}

/** Returns the error of the work where what is due at its end failed as well, else the error itself; only that one tells its kind. */
export function causeOf(error: unknown): unknown {
  return error instanceof Error && 'suppressed' in error ? causeOf(error.suppressed) : error
}

/** Returns the code of an error of the system or of a database, such as ENOENT, and undefined where there is none. */
export function errnoOf(thrown: unknown): string | undefined {
  const error = causeOf(thrown)
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** Tells whether this is an error of the system with this code, such as ENOENT. */
export function hasCode(error: unknown, code: string): boolean {
  return errnoOf(error) === code
}

/** Returns undefined when the work throws, whatever the error is. */
export function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

/** Returns undefined when the work finds no file. @throws every other error of the work */
export function unlessMissing<T>(work: () => T): T | undefined {
  return unlessCode(['ENOENT'], work)
}

/** Returns undefined when the work fails with one of these codes, such as EEXIST. @throws every other error of the work */
export function unlessCode<T>(codes: readonly string[], work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (codes.includes(errnoOf(error) ?? '')) return undefined
    throw error
  }
}

/** Tells whether the work ends without an error. */
export function succeeds(work: () => unknown): boolean {
  try {
    work()
    return true
  } catch {
    return false
  }
}

/** Does work when the scope ends in which this is declared, as `finally` would: `using _end = atEnd(() => closeSync(file))`. */
export function atEnd(work: () => unknown): Disposable {
  return { [Symbol.dispose]: () => void work() }
}

/** Does work that the end of the scope waits for, with `await using`. */
export function atAsyncEnd(work: () => Promise<unknown>): AsyncDisposable {
  return { [Symbol.asyncDispose]: async () => void (await work()) }
}
