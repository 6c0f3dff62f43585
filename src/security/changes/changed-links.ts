/** Judges new and changed symbolic links: they may lead to places in the workspace, or to folders that a command only reads. */

import type { Change } from '../../runtime/changes.ts'
import { isUnder } from '../targets/path.ts'
import type { ChangeView } from './change-view.ts'
import type { Finding } from './finding.ts'
import type { PathLock } from './locked-paths.ts'
import { resolveLink } from './resolve-link.ts'
import type { ReviewContext } from './review-context.ts'

/** Virtual environments and package managers link to programs in these folders. */
const systemFolders = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/opt', '/nix/store', '/gnu/store']

type Links = { readonly view: ChangeView; readonly context: ReviewContext; readonly lock: PathLock }

export function judgeLink({ path, before, after }: Change, { view, context, lock }: Links): Finding | undefined {
  if (after?.kind !== 'link' || (before?.kind === 'link' && before.target === after.target)) return
  const deny = (rule: Finding['rule'], why: string) => ({ weight: 'deny', rule, path, why }) as const
  const end = resolveLink({ view, policy: context.policy, link: path, side: 'after' })
  if (end === undefined) return deny('changes.link', 'a link that cannot be followed')
  if (end.outside !== undefined) {
    const isIn = (folder: string) => isUnder(end.outside, folder)
    const isReadOnly = systemFolders.some(isIn) || (context.readOnlyFolders?.().some(isIn) ?? false)
    return isReadOnly ? undefined : deny('changes.link', `a link that leads out of the workspace, to ${JSON.stringify(end.outside)}`)
  }
  const locked = lock(end.inside)
  if (locked?.rule === 'changes.forbidden') return deny(locked.rule, `a link to ${JSON.stringify(end.inside)}, ${locked.why}`)
}
