/** Where a folder says what it wants the model to know: a look at two names, and no more. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'

const names = ['AGENTS.md', 'CLAUDE.md'] as const

/** Of all these files together, in bytes of what the model is told. */
export const instructionBytes = 32_768

/** One look at each name. @returns the path from the root; undefined when there is no such file in this folder ('' is the root itself) */
export function instructionFile(root: string, folder: string): string | undefined {
  const name = names.find((each) => existsSync(join(root, folder, each)))
  return name && (folder === '' ? name : `${folder}/${name}`)
}
