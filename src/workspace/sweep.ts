/** Takes away the temporary files that a killed write left beside its target: ours by name and owner, and old enough to be nobody's. */

import { lstatSync, readdirSync, unlinkSync } from 'node:fs'
import { type Handle, slot } from './descriptor.ts'

const OLD_MS = 60 * 60 * 1_000

/** What a new text is written to before it takes the place of the old; the name says whose it is, and with `purpose` (letters) what for. */
export function temporaryName(purpose?: string): string {
  return `.braidclaw-${crypto.randomUUID()}${purpose === undefined ? '' : `.${purpose}`}.tmp`
}

const ours = /^\.braidclaw-[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}(?:\.(?<purpose>[a-zA-Z]+))?\.tmp$/

/** Of the temporary files that lie in a folder now. @throws the system's error */
export function purposesIn(folder: Handle): string[] {
  return readdirSync(slot(folder)).flatMap((name) => ours.exec(name)?.groups?.purpose ?? [])
}

/** In one folder, not below. What cannot be looked at or removed stays: it harms nobody. */
export function sweepTemporary(folder: Handle, now = Date.now()): void {
  for (const name of namesIn(folder)) {
    if (!ours.test(name)) continue
    try {
      const stat = lstatSync(slot(folder, name))
      const mine = stat.isFile() && stat.nlink === 1 && stat.uid === process.geteuid?.()
      if (mine && now - stat.mtimeMs > OLD_MS && now - stat.ctimeMs > OLD_MS) unlinkSync(slot(folder, name))
    } catch {
      // gone meanwhile, or not ours to take
    }
  }
}

function namesIn(folder: Handle): string[] {
  try {
    return readdirSync(slot(folder))
  } catch {
    return []
  }
}
