/** Translates errors of the receipts on disk into messages a person can act on. */

export type ReceiptFailure = {
  /** `altered`: the log differs from what was written. `key`: missing, readable by others, or invalid. The other codes are disk errors. */
  readonly code: 'altered' | 'key' | 'full' | 'read_only' | 'unreadable'
  readonly message: string
}

export type Failed = { readonly ok: false; readonly failure: ReceiptFailure }

/** @returns the failure when the disk reports an error at `path` */
export function guarded<T>(path: string, step: () => T): T | Failed {
  try {
    return step()
  } catch (error) {
    const failure = diskFailure(path, error)
    if (!failure) throw error
    return { ok: false, failure }
  }
}

/** Returns the disk failure behind a thrown value; undefined for anything else, which is a bug. */
export function diskFailure(path: string, error: unknown): ReceiptFailure | undefined {
  if (!(error instanceof Error) || !('code' in error) || !('errno' in error)) return undefined
  const why = `receipts at "${path}" cannot be written or read (${error.message})`
  if (error.code === 'ENOSPC' || error.code === 'EDQUOT') return fullDisk(path)
  if (error.code === 'EROFS') return { code: 'read_only', message: `${why}; the file system is read-only: remount it, or move the home` }
  return { code: 'unreadable', message: `${why}; check that it is a file you own on a working disk, or name another "path" in [receipts]` }
}

export function fullDisk(path: string): ReceiptFailure {
  return { code: 'full', message: `no receipt can be appended to "${path}": the disk is full; free some space and try again` }
}
