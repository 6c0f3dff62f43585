/** Finds our own program, and ends the patience with which the executable was built. */

import { join } from 'node:path'

export function isCompiled(): boolean {
  return import.meta.path.startsWith('/$bunfs/')
}

/** @returns an absolute path */
export function ownProgram(): string {
  return isCompiled() ? process.execPath : join(import.meta.dir, '../../bin/braidclaw')
}

/**
 * Compiles what runs often as soon as usual. The executable is built for short lives (scripts/compile.ts). Servers call this with the first
 * request that asks something of them: one that only waits keeps the 5 MB of the compiler.
 */
export function warmUp(): void {
  Bun.unsafe.setJITPolicy(1)
}
