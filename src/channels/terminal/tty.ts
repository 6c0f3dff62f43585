/** Is there a person at this descriptor, and can we ask them something? */

import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { statFields } from '../../kit/proc.ts'

/** Linux: a character device of the tty or pts majors. `node:tty` says the same for 8 ms of start-up. */
export function isTerminal(fd: number): boolean {
  try {
    const stat = fstatSync(fd)
    const major = (stat.rdev >> 8) & 0xfff
    return stat.isCharacterDevice() && (major === 4 || major === 5 || (major >= 136 && major <= 143))
  } catch {
    return false
  }
}

/** Of the terminal behind stderr, as it is now. Costs 12 ms the first time. */
export function columnsOfStderr(): number {
  return process.stderr.columns || 80
}

/** Whether what is written there may show up on the terminal: it is one, or a pipe whose reader may print it. */
export function mayShare(fd: number): boolean {
  try {
    return !fstatSync(fd).isFile()
  } catch {
    return false
  }
}

/** What stdin is: a person, data (file or pipe), or nothing at all (closed, /dev/null). */
export function stdinKind(): 'terminal' | 'data' | 'nothing' {
  if (isTerminal(0)) return 'terminal'
  try {
    const stat = fstatSync(0)
    return stat.isFIFO() || stat.isFile() || stat.isSocket() ? 'data' : 'nothing'
  } catch {
    return 'nothing'
  }
}

/** The controlling terminal, where questions are asked: never a stdin that carries data. Undefined when there is none. */
export function openTerminal(): number | undefined {
  // Without one the open fails, and the error costs more than looking first.
  if (hasNoTerminal()) return isTerminal(0) ? 0 : undefined
  try {
    const fd = openSync('/dev/tty', 'r+')
    if (isTerminal(fd)) return fd
    closeSync(fd)
  } catch {}
  return isTerminal(0) ? 0 : undefined
}

/** False also where nobody can tell. */
function hasNoTerminal(): boolean {
  try {
    return statFields(readFileSync('/proc/self/stat', 'latin1'))(7) === '0'
  } catch {
    return false
  }
}
