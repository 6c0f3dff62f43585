/** Defines what the workspace accepts and returns; every refusal is a value with a message that the model can act on. */

import type { JsonObject } from '../kit/json.ts'
import type { Access } from '../security/targets/path.ts'
import type { Handle } from './descriptor.ts'

export type CheckVerdict = { readonly ok: true } | { readonly ok: false; readonly rule: string; readonly reason: string }

/** The path gate. Pure and cheap: one access asks it several times, with the real path of the opened file. */
export type Check = (absoluteRealPath: string, access: Access) => CheckVerdict

/**
 * `denied` names the rule that refused; without it the access was allowed but failed for another reason. `missing` is the path where
 * the file would be, with all symbolic links followed; the gate allowed that path.
 */
export type FileRefusal = {
  readonly ok: false
  readonly denied?: string
  readonly missing?: string
  readonly message: string
  /** Shows what the refusal is about; the metadata `seen` are files that the caller knows from now on. */
  readonly shown?: { readonly output: string; readonly metadata: JsonObject }
}

/**
 * A file as the caller knows it now: SHA-256 of the whole in hex. With `was` the call showed or changed a part of it, and the caller
 * knows the rest only as far as it knew that version.
 */
export type FileVersion = { readonly path: string; readonly sha256: string; readonly was?: string }

type Known = { readonly seen: readonly FileVersion[] }

export type EntryType = 'file' | 'directory' | 'link' | 'other'

/** `size` in bytes, for files only. `path` is relative to the listed folder. */
export type ListEntry = { readonly path: string; readonly type: EntryType; readonly size?: number }

/** Lines are counted from 1. `totalLines` is absent when the file is too long to count; `size` is the whole file in bytes. */
export type TextRead = {
  readonly ok: true
  readonly path: string
  readonly text: string
  readonly firstLine: number
  readonly lastLine: number
  readonly totalLines?: number
  readonly size: number
  /** The file continues after the returned text. */
  readonly more: boolean
  /** The last returned line was itself cut at `maxBytes`. */
  readonly cutLine: boolean
  /** The file has bytes that are not UTF-8; the text shows them as U+FFFD. */
  readonly invalid: boolean
  /** Empty for a file that is too long. */
  readonly seen: readonly FileVersion[]
}

export type BytesRead = { readonly ok: true; readonly path: string; readonly bytes: Uint8Array }

/** `total` counts every entry seen; it is exact when `complete`, otherwise a lower bound. */
export type FolderListing = {
  readonly ok: true
  readonly path: string
  readonly entries: readonly ListEntry[]
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

/** `note` says how many bytes the file has, and what happened to line ends and encoding. */
export type WriteResult = Known & {
  readonly ok: true
  readonly path: string
  readonly bytes: number
  readonly created: boolean
  readonly note: string
}

/** `line` is where the replaced text began, counted from 1. `note` describes any change beyond the exact replacement. */
export type Edited = Known & {
  readonly ok: true
  readonly path: string
  readonly line: number
  readonly bytes: number
  readonly note?: string
}

export type EditPreview = { readonly ok: true; readonly path: string; readonly before: string; readonly after: string }

export type Deleted = { readonly ok: true; readonly path: string; readonly files: number; readonly folders: number }

/** The call that writes, for the record of the change. */
export type By = { readonly call: string; readonly tool: string }

/** A write that is about to replace or create `name` with the complete file `temporary` in the same folder. */
export type ComingWrite = {
  /** Current absolute path of the file. */
  readonly real: string
  readonly folder: Handle
  readonly name: string
  readonly temporary: string
  readonly replaces: boolean
  /** SHA-256 of the new content in hex. */
  readonly sha256: string
  /** Absolute paths of the folders that were made for it, the outer ones first. */
  readonly madeFolders: readonly string[]
  readonly by?: By
}

/** A path; with its real bytes (base64) where these are not UTF-8. */
export type NamedPath = string | { readonly path: string; readonly bytes?: string }

/** Keeps what file tools replace or delete, so that a person can undo it. */
export type Originals = {
  /** Keeps the original; `forget` is for a write that then fails. @throws the system's error; then nothing is written */
  keep(write: ComingWrite): { forget(): void }
  /**
   * Refuses to replace or delete files as they are now; `put` is the content that would replace the only one. `read` returns undefined
   * for a file that is too long or may not be read.
   */
  unseen?(files: readonly { readonly path: string; read(): Uint8Array | undefined }[], put?: Uint8Array): FileRefusal | undefined
  /** Deletes what the names are now, all or nothing; they are relative to the workspace, parents before what is in them. Never rejects. */
  delete(paths: readonly NamedPath[], by?: By): Promise<{ readonly ok: true } | { readonly ok: false; readonly message: string }>
}

export type Scanned = { readonly ok: true; readonly path: string; readonly binary: boolean; readonly complete: boolean }

/** Called for every line; `text()` decodes it (cut at `maxLineBytes`). Return false to stop. */
export type OnLine = (number: number, text: () => string) => boolean

export type Workspace = {
  /** Absolute, without symbolic links. */
  readonly root: string
  /** `offset` is a line counted from 1, `limit` a number of lines; returns at most `maxBytes` bytes. */
  readText(path: string, options: { readonly offset?: number; readonly limit?: number; readonly maxBytes: number }): TextRead | FileRefusal
  readBytes(path: string, options: { readonly maxBytes: number }): BytesRead | FileRefusal
  list(path: string, options: { readonly depth?: number; readonly maxEntries: number }): FolderListing | FileRefusal
  /** Replaces the whole file or creates it, with missing folders. A reader sees the old text or the new text, never a mixture. */
  writeText(path: string, text: string, by?: By): WriteResult | FileRefusal
  /** Does the same with bytes that are no text. */
  writeBytes(path: string, bytes: Uint8Array, by?: By): WriteResult | FileRefusal
  /** Replaces the only occurrence of `find`; refuses when there are none or several. */
  editText(path: string, change: { readonly find: string; readonly put: string }, by?: By): Edited | FileRefusal
  /** Deletes a file, a link (not what it leads to) or a folder; a folder with something in it only when `recursive`. Never rejects. */
  delete(path: string, options: { readonly recursive: boolean; readonly by?: By }): Promise<Deleted | FileRefusal>
  /** Returns the file's text before and after such an edit, and writes nothing. */
  previewEdit(path: string, change: { readonly find: string; readonly put: string }): EditPreview | FileRefusal
  stat(path: string): Stat | FileRefusal
  /**
   * Yields every regular file under a folder (or the file itself), with paths relative to the root, ordered by name. Leaves out `.git`,
   * `node_modules` and files that .gitignore excludes. Calls `onSkip` for paths that the rules or the system refused.
   */
  walk(path: string, options?: { readonly onSkip?: (path: string, why: string) => void }): Iterable<string>
  /** Reads the lines of one file in one pass; stops at a NUL byte (`binary`) or after 64 MiB (`complete: false`). */
  scan(path: string, options: { readonly maxLineBytes: number; readonly onLine: OnLine }): Scanned | FileRefusal
}
