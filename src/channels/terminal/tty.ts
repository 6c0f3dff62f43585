/** Detects terminals: whether a descriptor is one, and whether a person can be asked. */

import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { attempt } from '../../kit/errors.ts'
import { statFields } from '../../kit/proc.ts'

/** Linux: a character device with a tty or pts major number. `node:tty` finds the same for 8 ms of start-up. */
export function isTerminal(fd: number): boolean {
  try {
    const stat = fstatSync(fd)
    const major = (stat.rdev >> 8) & 0xfff
    return stat.isCharacterDevice() && (major === 4 || major === 5 || (major >= 136 && major <= 143))
  } catch {
    return false
  }
}

/** Returns the present width of the terminal behind stderr. The first call costs 12 ms. */
export function columnsOfStderr(): number {
  return process.stderr.columns || 80
}

/** Tells whether output there may appear on the terminal: it is a terminal, or a pipe whose reader may print it. */
export function mayShare(fd: number): boolean {
  return attempt(() => !fstatSync(fd).isFile()) ?? false
}

/** Returns what stdin is: a person, data (file or pipe), or nothing (closed, /dev/null). */
export function stdinKind(): 'terminal' | 'data' | 'nothing' {
  if (isTerminal(0)) return 'terminal'
  try {
    const stat = fstatSync(0)
    return stat.isFIFO() || stat.isFile() || stat.isSocket() ? 'data' : 'nothing'
  } catch {
    return 'nothing'
  }
}

/** Opens the controlling terminal for questions, never a stdin that carries data. Undefined when there is none. */
export function openTerminal(): number | undefined {
  // Without a controlling terminal the open fails, and that error costs more than this check.
  if (hasNoTerminal()) return isTerminal(0) ? 0 : undefined
  try {
    const fd = openSync('/dev/tty', 'r+')
    if (isTerminal(fd)) return fd
    closeSync(fd)
  } catch {}
  return isTerminal(0) ? 0 : undefined
}

/** Returns false also when it cannot be determined. */
function hasNoTerminal(): boolean {
  return attempt(() => statFields(readFileSync('/proc/self/stat', 'latin1'))(7) === '0') ?? false
}
