/** Applies what the person chose and edited to a change set, so that the next question shows exactly what a yes applies. */

import { sha256 } from '../../../kit/sha256.ts'
import type { Change, ChangeSet, Revision } from '../../../runtime/changes.ts'

export function revised(set: ChangeSet, revision: Revision | undefined): ChangeSet {
  if (revision === undefined) return set
  const only = new Set(revision.only)
  const mine = (path: string) => revision.edited?.get(path)
  return {
    ...set,
    changes: set.changes.filter(({ path }) => only.has(path)).map((change) => withContent(change, mine(change.path))),
    content(change, side, maxBytes) {
      const own = side === 'after' ? mine(change.path) : undefined
      if (own === undefined) return set.content(change, side, maxBytes)
      return own.length <= maxBytes ? own : undefined
    },
  }
}

function withContent(change: Change, content: Uint8Array | undefined): Change {
  if (content === undefined || change.after === undefined) return change
  return { ...change, after: { ...change.after, size: content.length, sha256: sha256(content) } }
}
