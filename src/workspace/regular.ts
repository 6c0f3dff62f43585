/** Ensures that only regular files are read or replaced; the message names what a pipe, device or socket is. */

import type { Stats } from 'node:fs'
import type { Access, Refusal } from './contract.ts'
import { explain, flags, type Handle, hold, slot } from './descriptor.ts'
import { type Found, type Locator, quote } from './locate-path.ts'

export function openRegular(locator: Locator, given: string, access: Access): Found | Refusal {
  const found = locator.locate(given, access)
  if (!found.ok || found.stat.isFile()) return found
  found.held[Symbol.dispose]()
  return { ok: false, message: `${quote(given)} is ${kindOf(found.stat)}, not a regular file` }
}

export function kindOf(stat: Stats): string {
  if (stat.isDirectory()) return 'a folder'
  if (stat.isFIFO()) return 'a named pipe (FIFO)'
  if (stat.isSocket()) return 'a socket'
  if (stat.isCharacterDevice()) return 'a character device'
  if (stat.isBlockDevice()) return 'a block device'
  return stat.isFile() ? 'a file' : 'of an unknown kind'
}

/** Opens the checked file for reading through its descriptor and passes it to `use`; system errors become a refusal. */
export function reading<T>(given: string, looked: Handle, use: (file: Handle) => T | Refusal): T | Refusal {
  try {
    using file = hold(slot(looked), flags.read)
    return use(file)
  } catch (error) {
    return { ok: false, message: `cannot read ${quote(given)}: ${explain(error)}` }
  }
}
