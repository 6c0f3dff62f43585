/** Judges what was changed in a copy of the workspace, and keeps it as one change set that waits for a decision. */

import { renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Change, ChangeReview, ChangeSet } from '../../../runtime/changes.ts'
import { reviewChanges } from '../../../security/changes/review-changes.ts'
import type { About } from '../../../workspace/changes/contract.ts'
import { createLook } from '../../../workspace/changes/look.ts'
import { readMoves } from '../../../workspace/git/read-moves.ts'
import type { Host, Setup } from '../../api.ts'
import { policyOf } from '../../setup/effective-policy.ts'
import { createChangeRules } from '../../transactions/reviewed-views.ts'
import { changeSetOf } from '../kept-changes.ts'

export type CopyChanges = {
  readonly host: Pick<Host, 'changes'>
  readonly setup: Setup
  /** The id of the change set in the store. */
  readonly id: string
  readonly about: Omit<About, 'at'>
  readonly workspace: string
  readonly changes: readonly Change[]
  /** The folder with the new files in `up` and the mark `start` of the beginning. */
  readonly set: string
  /** The folder of the copies; `set` is moved beside it. */
  readonly base: string
}

export type KeptCopy = { readonly id: string; readonly set: ChangeSet; readonly review: ChangeReview }

/** The whole change set is judged as if one command had made it. @throws the system's error */
export async function keepCopy({ host, setup, id, about, workspace, changes, set, base }: CopyChanges): Promise<KeptCopy> {
  const { config, paths, context } = setup
  const policy = policyOf(config, paths, context.env)
  const upper = join(set, 'up')
  using look = createLook({ workspace, upper, changes })
  const ruled = await createChangeRules(setup)(changes)
  const judged = { policy, level: 'supervised', approved: false, look, ruled } as const
  const review = reviewChanges(changes, { ...judged, git: readMoves({ upper, changes, context: judged }) })
  const { store } = await host.changes()
  // Renamed within its file system, so that the mark of the beginning keeps its time; the store links to it.
  const folder = join(dirname(base), id)
  renameSync(set, folder)
  await store.hold(id, { changes, review, about: { ...about, at: Date.now() }, folder })
  const shown = store.show(id)
  return { id, review, set: shown ? changeSetOf(shown) : { stage: 'made', changes, content: () => undefined } }
}
