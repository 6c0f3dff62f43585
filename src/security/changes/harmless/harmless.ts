/** Decides which changes are harmless enough to be applied without a question, and says of the others why they are not. */

import type { Change } from '../../../runtime/changes.ts'
import { judgePath, type PathPolicy } from '../../targets/path.ts'
import { spelt } from '../../targets/protected.ts'
import { type ChangeView, nameOf } from '../change-view.ts'
import type { Finding } from '../finding.ts'
import { resolveLink } from '../resolve-link.ts'
import { isLockFile, isManifest, manifestRisk } from './manifests.ts'
import { isRunUnasked } from './run-unasked.ts'

type Around = { readonly view: ChangeView; readonly policy: PathPolicy }

export function askAbout(change: Change, around: Around): Finding | undefined {
  const why = change.after?.kind === 'link' ? linkRisk(change, around) : (modeRisk(change) ?? contentRisk(change, around.view))
  return why === undefined ? undefined : { weight: 'ask', rule: 'changes.not_harmless', path: change.path, why }
}

function modeRisk({ before, after }: Change): string | undefined {
  if (before?.kind === 'other') return 'it replaces a pipe, socket or device'
  if (after === undefined || after.kind === 'other') return
  const had = before?.kind === after.kind ? before.mode : 0
  if (after.kind === 'file' && (after.mode & 0o111 & ~had) !== 0) return 'a new executable'
  if ((after.mode & 0o002 & ~had) !== 0) return 'every user of this machine may write it'
}

function contentRisk({ path, before, after }: Change, view: ChangeView): string | undefined {
  if (after?.kind !== 'file' && before?.kind !== 'file') return
  // Nobody runs a build in a .git folder, and a branch may have any name.
  if (/(?:^|\/)\.git\//.test(path)) return
  if (isRunUnasked(spelt(path))) return 'a file that development tools or agents run or obey unasked'
  return manifestRisk(path, view)
}

/**
 * A link to a plain file of the workspace does no more than a copy of it would: nobody runs the file, and neither name is one that programs
 * run, obey or hide. What the link leads to must be there, since something else could come to stand in its place.
 */
function linkRisk({ path, bytes, before }: Change, { view, policy }: Around): string | undefined {
  if (before?.kind === 'other') return 'it replaces a pipe, socket or device'
  const end = bytes === undefined ? resolveLink({ view, policy, link: path, side: 'after' })?.inside : undefined
  const isPlain = end !== undefined && view.kind(end, 'after') === 'file' && ((view.mode(end, 'after') ?? 0o111) & 0o111) === 0
  return isPlain && [path, end].every((each) => isOrdinary(each, policy)) ? undefined : 'a symbolic link to more than a plain file'
}

function isOrdinary(path: string, policy: PathPolicy): boolean {
  const name = spelt(nameOf(path))
  if (isRunUnasked(spelt(path)) || isManifest(name) || isLockFile(name)) return false
  return (['read', 'write'] as const).every((access) => judgePath({ path, access, cwd: policy.workspace, policy }).ok)
}
