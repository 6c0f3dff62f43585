/** Defines the claims of a final answer, and the facts of its turn. */

import type { CheckKind, GitOp, ProgramRun } from '../../../security/command/program-runs.ts'

export type FileOp = 'created' | 'updated' | 'deleted' | 'renamed'
/** `any`: the answer says that the file changed, and not how. `saved`: created or updated. */
export type ClaimedOp = FileOp | 'saved' | 'any'

/** A claim of the answer; `text` is the part of the sentence that makes it, on one line of at most 120 characters. */
export type AnswerClaim = { readonly text: string } & (
  | { readonly kind: CheckKind | 'clean' | 'verified' }
  | { readonly kind: 'file'; readonly path: string; readonly op: ClaimedOp }
  | { readonly kind: 'git'; readonly op: GitOp }
  | { readonly kind: 'ran'; readonly command: string }
  | { readonly kind: 'installed'; readonly name?: string }
  /** `needs`: a fix needs a change of a file; "done" is satisfied by a command that ended well as well. */
  | { readonly kind: 'done'; readonly needs: 'change' | 'effect' }
)

/** A fact of the turn. Facts stand in the order in which they happened. */
export type Fact = {
  readonly type: 'command' | 'change' | 'read'
  /** The command line, or the path. */
  readonly text: string
  /** The programs of the command, or of the command that made the change; none for a file tool. */
  readonly runs: readonly ProgramRun[]
  /** Absent: it is not a change. */
  readonly op?: FileOp | undefined
  /** The old path of a renamed file. */
  readonly from?: string | undefined
  /** Absent: the command never ended by itself. */
  readonly exit?: number | undefined
  /** The command never ran, or the change never reached the folder. */
  readonly denied?: boolean | undefined
  /** True: the files that the command changed are not known. */
  readonly direct?: boolean | undefined
  readonly receipt?: string | undefined
  /** The digest of the files that a check of the run saw. */
  readonly tree?: string | undefined
  /** It belongs to an earlier turn of the conversation. */
  readonly earlier?: boolean
}
