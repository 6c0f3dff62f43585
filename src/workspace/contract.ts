/** What the workspace answers: every refusal is a value with a message the model can act on. */

export type Access = 'read' | 'write'

export type Verdict = { readonly ok: true } | { readonly ok: false; readonly rule: string; readonly reason: string }

/** The path gate. Pure and cheap: it is asked several times for one access, with the real path of what was opened. */
export type Check = (absoluteRealPath: string, access: Access) => Verdict

/** `denied` names the rule that refused; without it the access was allowed and something else went wrong. */
export type Refusal = { readonly ok: false; readonly denied?: string; readonly message: string }

export type EntryType = 'file' | 'directory' | 'link' | 'other'

/** `size` in bytes, for files only. `path` is relative to the folder that was listed. */
export type Entry = { readonly path: string; readonly type: EntryType; readonly size?: number }

/** Lines are counted from 1. `totalLines` is absent when the file is too long to count; `size` is the whole file in bytes. */
export type TextRead = {
  readonly ok: true
  readonly path: string
  readonly text: string
  readonly firstLine: number
  readonly lastLine: number
  readonly totalLines?: number
  readonly size: number
  /** There is more of the file after what is shown. */
  readonly more: boolean
  /** The last line shown was itself cut at `maxBytes`. */
  readonly cutLine: boolean
  /** Bytes that are no UTF-8 are shown as U+FFFD. */
  readonly invalid: boolean
}

export type BytesRead = { readonly ok: true; readonly path: string; readonly bytes: Uint8Array }

/** `total` counts everything seen; it is exact when `complete`, else a lower bound. */
export type Listing = {
  readonly ok: true
  readonly path: string
  readonly entries: readonly Entry[]
  readonly total: number
  readonly complete: boolean
}

export type Stat = {
  readonly ok: true
  readonly path: string
  readonly type: 'file' | 'directory' | 'other'
  readonly size: number
  readonly mtimeMs: number
  readonly mode: number
}

export type Written = { readonly ok: true; readonly path: string; readonly bytes: number; readonly created: boolean }

/** `line` is where the replaced text began, counted from 1. `note` says what was done beyond the exact words. */
export type Edited = { readonly ok: true; readonly path: string; readonly line: number; readonly bytes: number; readonly note?: string }

export type Scanned = { readonly ok: true; readonly path: string; readonly binary: boolean; readonly complete: boolean }

/** Called for every line; `text()` decodes it (cut at `maxLineBytes`). Return false to stop. */
export type OnLine = (number: number, text: () => string) => boolean

export type Workspace = {
  /** Absolute and real. */
  readonly root: string
  /** `offset` is a line counted from 1, `limit` a number of lines; at most `maxBytes` bytes come back. */
  readText(path: string, options: { readonly offset?: number; readonly limit?: number; readonly maxBytes: number }): TextRead | Refusal
  readBytes(path: string, options: { readonly maxBytes: number }): BytesRead | Refusal
  list(path: string, options: { readonly depth?: number; readonly maxEntries: number }): Listing | Refusal
  /** Replaces the whole file or creates it, with missing folders; a reader sees the old text or the new one, never a mixture. */
  writeText(path: string, text: string): Written | Refusal
  /** Replaces the one place where `find` stands. */
  editText(path: string, change: { readonly find: string; readonly put: string }): Edited | Refusal
  stat(path: string): Stat | Refusal
  /**
   * Every regular file under a folder (or the file itself), paths relative to the root, in order of name; leaves out `.git`,
   * `node_modules` and what .gitignore files name. `onSkip` hears of what the rules or the system refused.
   */
  walk(path: string, options?: { readonly onSkip?: (path: string, why: string) => void }): Iterable<string>
  /** The lines of one file, read in one pass; stops at a NUL byte (`binary`) or after 64 MiB (`complete: false`). */
  scan(path: string, options: { readonly maxLineBytes: number; readonly onLine: OnLine }): Scanned | Refusal
}
