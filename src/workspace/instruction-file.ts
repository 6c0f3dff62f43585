/** Finds a folder's instruction file for the model by checking three names. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** The first that a folder has counts. */
export const instructionNames = ['AGENTS.override.md', 'AGENTS.md', 'CLAUDE.md'] as const

/** Limit for all instruction files together, in bytes of the text that the model gets. */
export const instructionBytes = 32_768

/** Checks each name once. @returns the path from the root; undefined when this folder has no such file ('' is the root itself) */
export function instructionFile(root: string, folder: string): string | undefined {
  const name = instructionNames.find((each) => existsSync(join(root, folder, each)))
  return name && (folder === '' ? name : `${folder}/${name}`)
}
