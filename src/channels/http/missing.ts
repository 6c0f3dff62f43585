/** Tells "there is no such thing" from other failures of a lookup. */

import { FailureError } from '../../host/failure.ts'
import { HttpError } from '../../http/http-error.ts'

/** @throws HttpError 404 when the lookup says that what was named does not exist */
export function orMissing<T>(look: () => T): T {
  try {
    return look()
  } catch (error) {
    throw missing(error)
  }
}

/** As `orMissing`, for a lookup that takes time. */
export async function orMissingLater<T>(look: Promise<T>): Promise<T> {
  try {
    return await look
  } catch (error) {
    throw missing(error)
  }
}

function missing(error: unknown): unknown {
  return error instanceof FailureError && error.code === 'error' ? new HttpError(404, 'not_found', error.message) : error
}
