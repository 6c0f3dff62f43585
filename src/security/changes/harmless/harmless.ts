/** Decides which changes are harmless enough to be applied without a question, and says of the others why they are not. */

import type { Change } from '../../../runtime/changes.ts'
import { spelt } from '../../targets/protected.ts'
import type { ChangeView } from '../change-view.ts'
import type { Finding } from '../finding.ts'
import { manifestRisk } from './manifests.ts'
import { isRunUnasked } from './run-unasked.ts'

export function askAbout(change: Change, view: ChangeView): Finding | undefined {
  const why = modeRisk(change) ?? contentRisk(change, view)
  return why === undefined ? undefined : { weight: 'ask', rule: 'changes.not_harmless', path: change.path, why }
}

function modeRisk({ before, after }: Change): string | undefined {
  if (before?.kind === 'other') return 'it replaces a pipe, socket or device'
  if (after === undefined || after.kind === 'other') return
  if (after.kind === 'link') return 'a symbolic link'
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
