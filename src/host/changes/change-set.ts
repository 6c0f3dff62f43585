/** Declares what entrances see of changes to the workspace. */

import type { Change } from '../../runtime/changes.ts'

/** Changes to files of the workspace, as a person is shown them: of one command, or of one call of a file tool. */
export type ChangeSet = {
  /** `made`: the command has ended, and a yes applies its changes; `proposed`: a yes lets the call make them. */
  readonly stage: 'made' | 'proposed'
  readonly changes: readonly Change[]
  /**
   * Returns the content of a file, or undefined when it cannot be shown: it is not a file, it is longer than `maxBytes`, it is no longer
   * kept, or it was changed since.
   */
  content(change: Change, side: 'before' | 'after', maxBytes: number): Uint8Array | undefined
  /**
   * Decides what a yes to the open question applies: only these paths, some of them with the person's own content. The record of the call
   * then has the digest of exactly that. Absent when a yes can only be to the whole. @returns undefined, or why it is not possible
   */
  revise?(revision: Revision): Promise<string | undefined>
}

/** Paths as in the changes. */
export type Revision = { readonly only: readonly string[]; readonly edited?: ReadonlyMap<string, Uint8Array> }
