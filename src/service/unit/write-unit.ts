/** Writes and reads the file that tells a service manager about us. */

import { readFileSync, renameSync, writeFileSync } from 'node:fs'

/** Writes it whole or not at all. It is readable only by its owner: a service's environment can hold private paths. */
export function writeUnit(path: string, text: string): void {
  const next = `${path}.new-${process.pid}`
  writeFileSync(next, text, { mode: 0o600 })
  renameSync(next, path)
}

/** @returns an empty text when there is no file, or none that can be read */
export function readUnit(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
