/** Builds the words that put an overlay in the place of the workspace, for both versions of bubblewrap. */

import { join } from 'node:path'

/** `bubblewrap`: it mounts the overlay itself, from version 0.11 on. `unshare`: a shell mounts it before bubblewrap starts. */
export type OverlayWay = 'bubblewrap' | 'unshare'

export type OverlayLaunch = {
  /** Words that stand before the name of bubblewrap. */
  readonly before: readonly string[]
  /** bubblewrap's own arguments. */
  readonly mounts: readonly string[]
}

type Launching = {
  readonly way: OverlayWay
  /** The folder of the transaction. */
  readonly folder: string
  readonly workspace: string
  readonly programs: Programs
  /** Nothing can be written to the view. */
  readonly readOnly?: boolean
}

/** Absolute paths. */
export type Programs = { readonly unshare: string; readonly mount: string }

/**
 * Relative names need no escaping and keep our paths out of the command's /proc/self/mountinfo. Without `userxattr` removing a folder ends
 * in an input/output error. `volatile` leaves out a flush to the disk for each file that is copied.
 */
const script = `cd -- "$1" && "$2" -i -n -t overlay overlay -o lowerdir=cache:lower,upperdir=up,workdir=work,userxattr,volatile mnt && cd / && shift 2 && exec "$@"`

export function overlayLaunch({ way, folder, workspace, programs, readOnly = false }: Launching): OverlayLaunch {
  if (way === 'unshare')
    return {
      before: [programs.unshare, '-Urm', '/bin/sh', '-c', script, 'sh', folder, programs.mount],
      mounts: [readOnly ? '--ro-bind' : '--bind', join(folder, 'mnt'), workspace],
    }
  // bubblewrap takes the lowest layer first.
  const layers = ['--overlay-src', workspace, '--overlay-src', join(folder, 'cache')]
  const overlay = [...layers, '--overlay', join(folder, 'up'), join(folder, 'work'), workspace]
  return { before: [], mounts: readOnly ? [...overlay, '--remount-ro', workspace] : overlay }
}
