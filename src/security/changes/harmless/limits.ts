/** Says when a change set is so large, or destroys so much, that a person should look at it, and which new files hold a secret. */

import { count, grouped } from '../../../kit/text.ts'
import type { Change } from '../../../runtime/changes.ts'
import type { ChangeView } from '../change-view.ts'
import type { Finding } from '../finding.ts'
import type { ReviewContext } from '../review-context.ts'

/** A file that keeps less than one byte in so many counts as emptied, and an emptied file as a deleted one. */
const emptied = 20

const most = { changes: 5_000, deleted: 50, bytes: 256 * 1024 ** 2 } as const
/** The secret of a longer file is looked for in its beginning only. */
const bytesSearched = 1024 ** 2
/** All searched content together: reading and searching 64 MiB takes a few hundred milliseconds. */
const bytesSearchedAtMost = 64 * 1024 ** 2

/** @param hasGit what git's history needs was read, so its objects do not count. @returns one sentence for what is beyond the limits */
export function beyondLimits(changes: readonly Change[], hasGit: boolean): string | undefined {
  const isObject = (path: string) => hasGit && /(?:^|\/)\.git\/(?:.+\/)?objects\//.test(path)
  const files = changes.filter(({ before, after }) => after?.kind === 'file' || before?.kind === 'file')
  const isEmptied = ({ before, after }: Change) => after?.kind === 'file' && (after.size ?? 0) * emptied < (before?.size ?? 0)
  const deleted = files.filter((change) => (change.after === undefined && !isObject(change.path)) || isEmptied(change)).length
  const bytes = files.reduce((sum, { after }) => sum + (after?.size ?? 0), 0)
  if (deleted > most.deleted) return `${count(deleted, 'file')} would be deleted or emptied, more than ${most.deleted}`
  if (changes.length > most.changes) return `${count(changes.length, 'change')}, more than ${grouped(most.changes)}`
  if (bytes > most.bytes) return `${grouped(Math.ceil(bytes / 1024 ** 2))} MiB would be written, more than ${most.bytes / 1024 ** 2}`
}

/** Looks for registered secrets in new and changed files, in the order of the changes. */
export function findSecrets(view: ChangeView, hasSecret: NonNullable<ReviewContext['hasSecret']>): readonly Finding[] {
  let left = bytesSearchedAtMost
  return view.changes.flatMap(({ path, after }) => {
    if (after?.kind !== 'file' || left <= 0 || after.size === 0) return []
    const content = view.start(path, 'after', Math.min(bytesSearched, left))
    left -= content?.length ?? 0
    const isFound = content !== undefined && hasSecret(content)
    return isFound ? [{ weight: 'ask', rule: 'changes.secret', path, why: 'it holds the value of a registered secret' } as const] : []
  })
}
