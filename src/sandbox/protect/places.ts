/** Decides which folders can be a workspace, and resolves the symbolic links in the paths of a sandbox. */

import { realpathSync, statSync } from 'node:fs'
import { isAbsolute, sep } from 'node:path'
import { realOf } from '../../kit/proc.ts'

export type Places = { readonly workspace: string; readonly home: string; readonly stateHome: string }

/** A command may write anywhere in its workspace, so no folder that the system or the user depends on can be one. */
const systemFolders = '/ /bin /home /lib /lib32 /lib64 /media /mnt /opt /root /run /sbin /srv /tmp /usr /var /var/tmp /var/lib'.split(' ')
const systemTrees = '/boot /dev /etc /proc /sys'.split(' ')

export function resolvePlaces(
  asked: Places,
): { readonly ok: true; readonly places: Places } | { readonly ok: false; readonly missing: string } {
  const no = (why: string) => ({ ok: false as const, missing: `workspace ${JSON.stringify(asked.workspace)}: ${why}` })
  if (!isAbsolute(asked.workspace)) return no('the path is not absolute; give the whole path')
  if (!statSync(asked.workspace, { throwIfNoEntry: false })?.isDirectory()) return no('the folder does not exist; create it first')
  const places = { workspace: realpathSync(asked.workspace), home: realOf(asked.home), stateHome: realOf(asked.stateHome) }
  const why = whyNoWorkspace(places)
  return why === undefined ? { ok: true, places } : no(why)
}

/** All paths are real. */
export function whyNoWorkspace({ workspace, home, stateHome }: Places): string | undefined {
  if (isWithin(home, workspace))
    return 'it is, or contains, your home folder, and every command could write there; choose a folder of its own inside'
  if (systemFolders.includes(workspace) || systemTrees.some((tree) => isWithin(workspace, tree)))
    return 'it belongs to the system, and every command could write there; choose a folder of its own'
  return workspace === stateHome ? 'it is where the receipts and keys are kept; choose another folder' : undefined
}

/** Returns true for the folder itself, too. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}
