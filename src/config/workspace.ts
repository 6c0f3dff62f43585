/** Chooses the workspace when nobody named one. */

import { realpathSync } from 'node:fs'
import type { Origin } from './config.ts'
import type { Entry } from './layers/entries.ts'

/** Used by background programs, and instead of a folder that contains too much. */
export const ownWorkspace = 'braidclaw-workspace'

export type StartFolder = {
  readonly cwd: string
  /** `~/.braidclaw`. */
  readonly home: string
  readonly userHome: string
  /** True for a background program, because its start folder does not show what it is for. */
  readonly stays?: boolean
}

export function unnamedWorkspace(at: StartFolder): Entry {
  if (at.stays || isTooBroad(at)) return { value: `${at.userHome === '/' ? '' : at.userHome}/${ownWorkspace}`, origin: builtIn }
  return { value: at.cwd, origin: { source: 'default', where: 'current folder' } }
}

/** A folder with this origin is created on first use. */
export const builtIn: Origin = { source: 'default', where: 'built in' }

/**
 * Recognises the root, the user's home folder or a parent of it, and our own records: a user there does not intend the tools to read and
 * change everything in it, keys and mail included.
 */
export function isTooBroad({ cwd, home, userHome }: StartFolder): boolean {
  const [here, own, ours] = [real(cwd), real(userHome), real(home)]
  return here === '/' || `${own}/`.startsWith(`${here}/`) || `${here}/`.startsWith(`${ours}/`)
}

function real(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
