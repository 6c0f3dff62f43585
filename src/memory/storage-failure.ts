/** Translates errors of the database file into messages a person can act on. */

import { SQLiteError } from 'bun:sqlite'

export type StorageFailure = {
  readonly code: 'replaced' | 'corrupt' | 'locked' | 'read_only' | 'full' | 'unreadable' | 'newer_schema'
  readonly path: string
  readonly message: string
}

type Advice = { readonly code: StorageFailure['code']; readonly what: string; readonly todo: string }

const advice: readonly (readonly [RegExp, Advice])[] = [
  [
    /^SQLITE_(CORRUPT|NOTADB)/,
    {
      code: 'corrupt',
      what: 'is damaged or not a SQLite database',
      todo: 'move it aside and restore a backup; BraidClaw creates a new one when it is absent',
    },
  ],
  [/^SQLITE_(BUSY|LOCKED)/, { code: 'locked', what: 'is in use by another process', todo: 'wait for it or end it, then try again' }],
  [/^(SQLITE_READONLY|EROFS)/, { code: 'read_only', what: 'cannot be written', todo: 'check the permissions of the file and its folder' }],
  [/^ESTALE/, { code: 'replaced', what: 'is not the file that was opened', todo: 'put it back, or start BraidClaw again' }],
  [/^(SQLITE_FULL|ENOSPC|EDQUOT)/, { code: 'full', what: 'cannot grow, the disk is full', todo: 'free some space and try again' }],
  [
    /^(SQLITE_(CANTOPEN|PERM|AUTH|IOERR|PROTOCOL)|E[A-Z]+$)/,
    { code: 'unreadable', what: 'cannot be read or written', todo: 'check that it is a file you own, on a working disk with free space' },
  ],
]

/** Returns the failure behind a thrown value, by the names of SQLite and errno; undefined for anything else, which is a bug. */
export function storageFailure(path: string, error: unknown): StorageFailure | undefined {
  const cause = causeOf(error)
  if (!cause) return undefined
  const found = advice.find(([pattern]) => pattern.test(cause.code))?.[1]
  if (!found) return undefined
  return {
    code: found.code,
    path,
    message: `database "${path}" ${found.what} (${cause.text.startsWith(cause.code) ? '' : `${cause.code}: `}${cause.text}); ${found.todo}`,
  }
}

/** Tells whether another process holds the lock: a retry may succeed. */
export function isLocked(error: unknown): boolean {
  return causeOf(error)?.code.startsWith('SQLITE_BUSY') === true
}

function causeOf(error: unknown): { code: string; text: string } | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined
  if (error instanceof SQLiteError || 'errno' in error) return { code: error.code, text: error.message }
  return undefined
}
