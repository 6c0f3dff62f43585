/** Reads which files some process holds locked: a database that is open elsewhere must not be replaced or removed. */

import { readFileSync } from 'node:fs'
import type { Found } from '../tree/identity.ts'
import type { RawName } from '../tree/names.ts'

/** SQLite locks one file of a database for all of them. */
const COMPANION = /-(wal|shm|journal)$/

export type HeldLocks = {
  /** @param find looks at another path of the workspace */
  isHeld(raw: RawName, found: Found, find: (raw: RawName) => Found | undefined): boolean
}

/** A system that does not show its locks has none. */
export function readHeldLocks(): HeldLocks {
  const held = new Set(lines().flatMap((line) => / ([\da-f]+:[\da-f]+:\d+) /.exec(line)?.[1] ?? []))
  const holds = (found: Found | undefined) => found !== undefined && held.has(`${found.device}:${found.inode}`)
  return {
    isHeld(raw, found, find) {
      if (held.size === 0) return false
      return holds(found) || (COMPANION.test(raw) && holds(find(raw.replace(COMPANION, ''))))
    },
  }
}

function lines(): string[] {
  try {
    return readFileSync('/proc/locks', 'latin1').split('\n')
  } catch {
    return []
  }
}
