/** stdout: whoever started us may have closed it, and a terminal behind it must not be driven by what a model says. */

import { fstatSync, readFileSync } from 'node:fs'
import { printable } from '../channels/render.ts'
import { isTerminal } from '../channels/tty.ts'
import { createSink, type Sink } from '../channels/wire.ts'

export function openStdout(): Sink {
  return isStandIn(1) ? lost() : createSink(1)
}

/** A text of a model for stdout: as it is for a program, unable to drive a terminal. */
export function forReader(text: string): string {
  return isTerminal(1) ? printable(text) : text
}

/** As if the system had said EBADF to the first write: nothing arrives, and that is no success. */
function lost(): Sink {
  const state = { tried: false }
  return {
    write(text) {
      if (text !== '') state.tried = true
    },
    closed: () => state.tried,
    failure: () => (state.tried ? 'EBADF' : undefined),
  }
}

/** /dev/null on Linux: major 1, minor 3. */
const nullDevice = 0x103
/** O_CLOEXEC. */
const closeOnExec = 0o2000000

/**
 * Bun opens /dev/null in place of a standard descriptor that is closed, and a write would then succeed. It opens it close-on-exec, which
 * no descriptor that came from whoever started us can be: theirs would not have lived through the exec.
 */
function isStandIn(fd: number): boolean {
  try {
    if (fstatSync(fd).rdev !== nullDevice) return false
    const info = readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1')
    const at = info.indexOf('flags:')
    return (Number.parseInt(info.slice(at + 'flags:'.length), 8) & closeOnExec) !== 0
  } catch {
    return false
  }
}
