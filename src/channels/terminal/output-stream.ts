/** Opens stdout, which the parent process may have closed. */

import { fstatSync, readFileSync } from 'node:fs'
import { missingDescriptor } from './descriptor.ts'
import { createPrinter, type DescriptorPrinter, type Overlay } from './printer.ts'

/** Treats a closed stdout as if the first write had failed with EBADF. */
export function openStdout(overlay: Overlay): DescriptorPrinter {
  return isStandIn(1) ? createPrinter(1, overlay, missingDescriptor()) : createPrinter(1, overlay)
}

/** /dev/null on Linux: major 1, minor 3. */
const nullDevice = 0x103
/** O_CLOEXEC. */
const closeOnExec = 0o2000000

/**
 * Bun opens /dev/null in place of a closed standard descriptor, so a write would succeed. Bun opens it close-on-exec, which an inherited
 * descriptor cannot be, because it would not have survived the exec.
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
