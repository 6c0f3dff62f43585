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
  const holds = (found: Found | undefined) => found !== undefined && held.has(keyOf(found))
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

/** The kernel prints the numbers of the device in hex with two digits at least, and the inode in decimal. */
function keyOf({ device, inode }: Found): string {
  const major = ((device >> 8n) & 0xfffn) | ((device >> 32n) & ~0xfffn)
  const minor = (device & 0xffn) | ((device >> 12n) & ~0xffn & 0xffffffffn)
  return `${hex(major)}:${hex(minor)}:${inode}`
}

function hex(number: bigint): string {
  return number.toString(16).padStart(2, '0')
}
