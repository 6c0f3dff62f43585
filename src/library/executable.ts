/** Finds the BraidClaw program that a library on Node drives. */

import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { attempt } from '../kit/errors.ts'

export type FindOptions = {
  /** A path that wins over everything else. */
  readonly executable?: string
  readonly env?: Readonly<Partial<Record<string, string>>>
}

/**
 * Returns the path of the program: the option, BRAIDCLAW_EXECUTABLE, the package for this platform, or `bin/braidclaw` of this package.
 * @throws Error that says what to install
 */
export function findExecutable({ executable, env = process.env }: FindOptions = {}): string {
  const given = executable ?? env.BRAIDCLAW_EXECUTABLE
  if (given) {
    if (existsSync(given)) return given
    throw new Error(
      `${executable ? 'executable' : 'BRAIDCLAW_EXECUTABLE'}: "${given}" does not exist; give the path of the braidclaw program`,
    )
  }
  const name = `@braidclaw/${process.platform}-${process.arch}`
  const ofPlatform = attempt(() => createRequire(import.meta.url).resolve(`${name}/bin/braidclaw`))
  const found = ofPlatform ?? fileURLToPath(new URL('../../bin/braidclaw', import.meta.url))
  if (existsSync(found)) return found
  throw new Error(
    `the braidclaw program is not installed for this machine; run: npm install ${name}, or set BRAIDCLAW_EXECUTABLE to its path`,
  )
}
