/** stdout: whoever started us may have closed it. */

import { fstatSync, readFileSync } from 'node:fs'
import { missingDescriptor } from './descriptor.ts'
import { createPrinter, type DescriptorPrinter, type Overlay } from './printer.ts'

/** A closed one is as if the system had said EBADF to the first write. */
export function openStdout(overlay: Overlay): DescriptorPrinter {
  return isStandIn(1) ? createPrinter(1, overlay, missingDescriptor()) : createPrinter(1, overlay)
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
