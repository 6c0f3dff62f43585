/** Defines what the change store accepts and returns. A change set is what one tool call changed, or would change, in the workspace. */

import type { Change, ChangeReview, OutsideGit } from '../../runtime/changes.ts'
import type { Side } from '../../security/changes/review-context.ts'
import type { OpenLook } from './look.ts'

export type { Side } from '../../security/changes/review-context.ts'

/** Names the call that made the changes. `at` is in milliseconds since 1970; `command` is what a shell ran. */
export type About = {
  readonly run: string
  readonly call: string
  readonly conversation: string
  readonly tool: string
  readonly command?: string
  readonly at: number
}

/**
 * `pending`: it waits for a decision. `unfinished`: a process died while it was applied or undone; recover() finishes it. `partly undone`:
 * some paths are as before. `stuck`: it could be neither finished nor taken back.
 */
export type SetState = 'pending' | 'unfinished' | 'applied' | 'partly undone' | 'undone' | 'stuck'

/** Stands for the tool of a set that holds what was moved aside after a command on the workspace itself. */
export const movedAside = 'moved aside'

export type SetSummary = {
  readonly id: string
  readonly state: SetState
  readonly about: About
  /** Absolute path of the workspace that it belongs to. */
  readonly workspace: string
  /** Number of changes. */
  readonly count: number
  /** Bytes of the files that are kept to undo or redo it. */
  readonly bytes: number
  readonly review?: ChangeReview
}

export type ShownSet = SetSummary & {
  readonly changes: readonly Change[]
  /** The absolute folder that holds what waits to be applied. */
  readonly upper: string
  readonly outside: OutsideGit | undefined
  /** Paths that were changed back since. */
  readonly undone: readonly string[]
  /**
   * Reads a file of the change set as it was before or after, at most `maxBytes` of it.
   * @returns undefined for what is not a file, or is no longer there unchanged
   */
  read(path: string, side: Side, maxBytes: number): Uint8Array | undefined
}

/** A path that somebody else changed, with the reason as the end of a sentence that begins with the path. */
export type Conflict = { readonly path: string; readonly reason: string }

/**
 * All or nothing: after `ok: false` the workspace is as before, unless `stuck`: then some originals are only in the folder of the change
 * set, which must be kept. `conflicts` is empty when something else failed.
 */
export type Applied =
  | { readonly ok: true; readonly count: number }
  | {
      readonly ok: false
      readonly conflicts: readonly Conflict[]
      readonly message: string
      readonly stuck?: true
      /** The judgement refused it, and nothing failed. */
      readonly denied?: true
    }

/** A change set on its way into the workspace, or out of it again, while nobody else changes the workspace. */
export type Entering = {
  readonly about: About
  /** The judgement that was made when the command had ended; absent for the changes of file tools. */
  readonly review?: ChangeReview
  readonly workspace: string
  /** The changes of this step: an undo leads from `after` to `before`, so its sides are exchanged here. */
  readonly changes: readonly Change[]
  readonly to: Side
  /** The admission of this set gave it when the set was applied. */
  readonly undoable?: readonly string[]
  /** Looks at the workspace as it is now, and as it would be. */
  readonly look: OpenLook
  /** The absolute folder that holds the new entries. */
  readonly upper: string
}

/**
 * `undoable`: what would be refused of an undo at once; an undo that comes later is refused only for other reasons. `review`: the judgement
 * of now, which the question about a waiting set shows from then on.
 */
export type Admission =
  | { readonly ok: true; readonly undoable?: readonly string[] }
  | { readonly ok: false; readonly message: string; readonly review?: ChangeReview }

/** Judges a change set again at the moment it is applied. Never rejects. */
export type Admit = (entering: Entering) => Promise<Admission>

export type HeldChanges = {
  readonly changes: readonly Change[]
  readonly review: ChangeReview
  readonly about: About
  readonly folder?: string
}

export type ToApply = {
  readonly id: string
  /** Absent, together with `about`, for a pending set. */
  readonly changes?: readonly Change[]
  readonly about?: About
  readonly review?: ChangeReview
  /** The folder with `up` and `start`, when it is not the one of this id in the store. */
  readonly folder?: string
  /** Cancels only until the plan is on disk; after that the change set is always finished. */
  readonly signal?: AbortSignal
  /** Default: that of the store. */
  readonly admit?: Admit
}

export type Recovered = {
  /** Change sets that were finished, or taken back because somebody changed the same files meanwhile. */
  readonly finished: readonly string[]
  readonly takenBack: readonly string[]
  /** Folders without a plan or a decision to wait for. */
  readonly orphans: readonly string[]
}

export type StoreLimits = {
  readonly keepBytes: number
  readonly keepDays: number
  readonly keepSets: number
  /** Tells whether the sets of this workspace are counted among themselves, so that they push out no others. */
  readonly isApart?: (workspace: string) => boolean
}
