/**
 * Finds changes below paths that no command may change: forbidden paths, BraidClaw's own files, and what links named like them point to.
 */

import { folded } from '../../kit/text.ts'
import { bringsHistory, plainGit } from '../command/plain-git.ts'
import { forbiddenPlace, isUnder, type PathPolicy } from '../targets/path.ts'
import { isProtectedName, protectedRows } from '../targets/protected.ts'
import { type ChangeView, folderOf, inFolder, isBelow, placeOf, resolveLink } from './change-view.ts'
import type { ChangeFinding, ReviewContext } from './review-context.ts'

/** @returns why this path may not change, or undefined */
export type PathLock = (path: string) => Omit<ChangeFinding, 'path'> | undefined

export function createPathLock(view: ChangeView, { policy, command, isForbiddenRead, runByGit = [] }: ReviewContext): PathLock {
  const forbidden = lockedPlaces(policy.forbiddenPaths.map((entry) => forbiddenPlace(entry, policy)))
  const own = lockedPlaces(policy.protectedPaths.filter((entry) => entry === policy.workspace || !isUnder(policy.workspace, entry)))
  const run = lockedPlaces(runByGit)
  const aliases = protectedLinks(view, policy)
  const deny = (rule: ChangeFinding['rule'], why: string) => ({ weight: 'deny', rule, why }) as const
  const sub = plainGit(command)
  const name = bringsHistory(sub)
    ? ({ weight: 'person', rule: 'changes.git_asks', why: `"git ${sub}" brings it, and other programs run or obey it` } as const)
    : deny('changes.protected', 'other programs run or obey it')
  return (path) => {
    const place = folded(placeOf(policy.workspace, path))
    if (forbidden(place)) return deny('changes.forbidden', 'under a forbidden path')
    if (own(place)) return deny('changes.protected', 'it belongs to BraidClaw itself')
    if (run(place)) return deny('changes.git', 'the settings of git name it as a hook or program')
    if (isForbiddenRead?.(path)) return deny('changes.forbidden', 'a file that must not be read (security.forbidden_reads)')
    if (isProtected(withinTree(view, path))) return name
    const alias = aliases.find(({ target, link }) => isBelow(path, target) && isProtected(link + path.slice(target.length)))
    return alias && deny('changes.protected', `the protected name ${JSON.stringify(alias.link)} leads to it`)
  }
}

/** Leaves out what stands before a path outside the workspace: the names of its repository's own folders, and of those above, protect nothing. */
function withinTree({ outside }: ChangeView, path: string): string {
  if (outside === undefined || !path.startsWith('/')) return path
  const { root, common } = outside
  if (isBelow(path, common)) return `.git${path.slice(common.length)}`
  const top = [root, folderOf(common)].find((folder) => path.startsWith(`${folder}/`))
  return top === undefined ? path : path.slice(top.length + 1)
}

/** Exempts paths in an exact `.git`, which are judged as parts of a repository (git/); every other spelling of that name is refused. */
function isProtected(path: string): boolean {
  return isProtectedName(path.includes('.git') ? path.replace(/(?<=^|\/)\.git(?=\/|$)/g, '-') : path)
}

function lockedPlaces(places: readonly string[]): (place: string) => boolean {
  const locks = places.map(folded)
  return (place) => locks.some((lock) => isUnder(place, lock))
}

type Alias = { readonly link: string; readonly target: string }

/** Limits how many folders are listed in the search for links. */
const foldersSearched = 60

/**
 * Finds the links with a protected name, or on the way to one, in the folders above the changes. Links that lead out are of no interest.
 */
function protectedLinks(view: ChangeView, policy: Pick<PathPolicy, 'workspace'>): readonly Alias[] {
  const found: Alias[] = []
  const search = (folder: string, depth: number) => {
    for (const name of view.names(folder, 'before') ?? []) {
      const path = inFolder(folder, name)
      const starts = protectedRows(name)
      if (name === '.git' || (starts.length === 0 && depth === 0)) continue
      const kind = view.kind(path, 'before')
      const end = kind === 'link' ? resolveLink({ view, policy, link: path, side: 'before' }) : undefined
      if (end?.inside) found.push({ link: path, target: end.inside })
      if (kind === 'folder' && depth === 0 && starts.some((row) => row.length > 1)) search(path, 1)
    }
  }
  for (const folder of foldersAbove(view)) search(folder, 0)
  return found
}

/** @returns the folders that hold changes, nearest to the workspace first */
function foldersAbove({ changes }: ChangeView): readonly string[] {
  const folders = new Set([''])
  for (const { path } of changes) for (let folder = folderOf(path); !folders.has(folder); folder = folderOf(folder)) folders.add(folder)
  return [...folders].toSorted((a, b) => a.split('/').length - b.split('/').length).slice(0, foldersSearched)
}
