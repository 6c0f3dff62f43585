/** Writes the file that tells a service manager about us, whole or not at all. */

import { renameSync, writeFileSync } from 'node:fs'

/** Readable only by its owner: a service's environment can hold private paths. */
export function writeUnit(path: string, text: string): void {
  const next = `${path}.new-${process.pid}`
  writeFileSync(next, text, { mode: 0o600 })
  renameSync(next, path)
}
