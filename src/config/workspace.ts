/** Which folder the tools work in when nobody named one. */

import { realpathSync } from 'node:fs'
import type { Origin } from './config.ts'
import type { Entry } from './layers/entries.ts'

/** For what stays in the background, and in place of a folder that holds too much. */
export const ownWorkspace = 'braidclaw-workspace'

export type Standpoint = {
  readonly cwd: string
  /** `~/.braidclaw`. */
  readonly home: string
  readonly userHome: string
  /** A program that stays in the background: where it was started says nothing about what it is for. */
  readonly stays?: boolean
}

export function unnamedWorkspace(at: Standpoint): Entry {
  if (at.stays || holdsTooMuch(at)) return { value: `${at.userHome === '/' ? '' : at.userHome}/${ownWorkspace}`, origin: builtIn }
  return { value: at.cwd, origin: { source: 'default', where: 'current folder' } }
}

/** With this origin the folder is made when it is first needed. */
export const builtIn: Origin = { source: 'default', where: 'built in' }

/**
 * The root, the user's home itself or a folder above it, and our own records: nobody who stands there means that all of it, keys and mail
 * included, is to be read and changed.
 */
export function holdsTooMuch({ cwd, home, userHome }: Standpoint): boolean {
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
