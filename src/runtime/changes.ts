/** Defines what a command changed in its private view of the workspace, and what the gate decided about it. */

/** A file, folder or link before or after the command. */
export type EntryState = {
  readonly kind: 'file' | 'folder' | 'link' | 'other'
  /** Permission bits with set-user-ID, set-group-ID and sticky: 0 to 0o7777. */
  readonly mode: number
  /** Bytes of a file. */
  readonly size?: number
  /** SHA-256 of a file's content in hex. */
  readonly sha256?: string
  /** The target of a link, unresolved. */
  readonly target?: string
}

/** A change without `before` creates, one without `after` deletes; a path appears once in a change set, parents before what is in them. */
export type Change = {
  /** Relative to the workspace, separated by "/", without "./"; absolute for what lies in its git directory outside of it. */
  readonly path: string
  /** Base64 of the real bytes when the path is not UTF-8; `path` then shows them with U+FFFD. */
  readonly bytes?: string
  readonly before?: EntryState
  readonly after?: EntryState
}

/**
 * The repository of a workspace that lies outside of it. All paths are absolute, without links: the folder of its `.git`, the folder of HEAD
 * and the index, and the folder of objects and references, which holds the second one or is the same.
 */
export type OutsideGit = { readonly root: string; readonly git: string; readonly common: string }

/**
 * The gate's judgement of a change set, made when the command has ended. `apply`: it may enter the workspace; `ask`: only after a yes to
 * this digest; `deny`: it is dropped.
 */
export type ChangeReview = {
  /** SHA-256 of the canonical JSON of the changes, in hex: an approval is bound to it. */
  readonly digest: string
  readonly verdict: 'apply' | 'ask' | 'deny'
  readonly rule: string
  readonly reason: string
  /** One escaped line for people: counts and the first paths. */
  readonly summary: string
  /** Number of changes. */
  readonly count: number
  /** SHA-256 of what speaks against the changes, whatever the level, in hex: a yes covers no other doubts. Absent: nothing does. */
  readonly doubts?: string
}

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
   * then has the digest of exactly that. Absent when a yes can only be to the whole. @returns the part for the decision that says yes, or
   * why it is not possible
   */
  revise?(revision: Revision): Promise<Revised>
  /** Says what happens to line ends and encodings. */
  readonly notes?: readonly string[]
  /** Moves in repositories, which are shown instead of git's own files. Absent when the changes move nothing. */
  readonly git?: GitShown
}

export type GitShown = {
  /** Tells whether the path is an object, a reference, an index or a log, which says nothing to a person. */
  isOwn(path: string): boolean
  /** One line for each reference, unescaped names quoted, with the files of its new commits. */
  parts(): readonly { readonly title: string; readonly set?: ChangeSet }[]
}

/** `part`: the digest of what would be applied. */
export type Revised = { readonly ok: true; readonly part: string } | { readonly ok: false; readonly message: string }

/** Paths as in the changes. */
export type Revision = { readonly only: readonly string[]; readonly edited?: ReadonlyMap<string, Uint8Array> }
