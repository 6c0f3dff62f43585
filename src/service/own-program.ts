/** Says where our own program is, for whoever starts it again. */

import { join } from 'node:path'

export function isCompiled(): boolean {
  return import.meta.path.startsWith('/$bunfs/')
}

/** @returns an absolute path */
export function ownProgram(): string {
  return isCompiled() ? process.execPath : join(import.meta.dir, '../../bin/braidclaw')
}
