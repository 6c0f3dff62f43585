/** Removes the temporary files that a killed write left beside its target, if name and owner match and the file is old enough. */

import { lstatSync, readdirSync, unlinkSync } from 'node:fs'
import { namesIn } from '../kit/proc.ts'
import { type Handle, slot } from './descriptor.ts'

const OLD_MS = 60 * 60 * 1_000

/**
 * Returns the name of the file that a new text is written to before it replaces the old file. The name marks it as a file of BraidClaw and
 * may contain a `purpose` (letters).
 */
export function temporaryName(purpose?: string): string {
  return `.braidclaw-${crypto.randomUUID()}${purpose === undefined ? '' : `.${purpose}`}.tmp`
}

const temporaryPattern = /^\.braidclaw-[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}(?:\.(?<purpose>[a-zA-Z]+))?\.tmp$/

export function isTemporaryName(name: string): boolean {
  return temporaryPattern.test(name)
}

/** @returns the purposes of the temporary files now in the folder @throws the system's error */
export function purposesIn(folder: Handle): string[] {
  return readdirSync(slot(folder)).flatMap((name) => temporaryPattern.exec(name)?.groups?.purpose ?? [])
}

/** Sweeps one folder without its subfolders. A file that cannot be examined or removed stays; it is harmless. */
export function sweepTemporary(folder: Handle, now = Date.now()): void {
  for (const name of namesIn(slot(folder))) {
    if (!isTemporaryName(name)) continue
    try {
      const stat = lstatSync(slot(folder, name))
      const mine = stat.isFile() && stat.nlink === 1 && stat.uid === process.geteuid?.()
      if (mine && now - stat.mtimeMs > OLD_MS && now - stat.ctimeMs > OLD_MS) unlinkSync(slot(folder, name))
    } catch {
      // The file is gone, or we may not remove it.
    }
  }
}
