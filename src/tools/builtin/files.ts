/** Declares the workspace functions that the file tools use. */

export type ToolRefusal = { readonly ok: false; readonly denied?: string; readonly message: string }

type FileAnswer<T> = ({ readonly ok: true; readonly path: string } & T) | ToolRefusal

export type FolderEntry = { readonly path: string; readonly type: 'file' | 'directory' | 'link' | 'other'; readonly size?: number }

export type FilePage = {
  readonly text: string
  readonly firstLine: number
  readonly lastLine: number
  readonly totalLines?: number
  readonly size: number
  readonly more: boolean
  readonly cutLine: boolean
  readonly invalid: boolean
}

export type FolderListing = { readonly entries: readonly FolderEntry[]; readonly total: number; readonly complete: boolean }

/** Names the call that writes. */
export type By = { readonly call: string; readonly tool: string }

export type WorkspaceFiles = {
  readonly root: string
  readText(path: string, options: { readonly offset?: number; readonly limit?: number; readonly maxBytes: number }): FileAnswer<FilePage>
  list(path: string, options: { readonly depth?: number; readonly maxEntries: number }): FileAnswer<FolderListing>
  writeText(path: string, text: string, by?: By): FileAnswer<{ readonly bytes: number; readonly created: boolean }>
  editText(
    path: string,
    change: { readonly find: string; readonly put: string },
    by?: By,
  ): FileAnswer<{ readonly line: number; readonly note?: string }>
  delete(
    path: string,
    options: { readonly recursive: boolean; readonly by?: By },
  ): Promise<FileAnswer<{ readonly files: number; readonly folders: number }>>
  stat(path: string): FileAnswer<{ readonly type: string }>
  walk(path: string, options?: { readonly onSkip?: (path: string, why: string) => void }): Iterable<string>
  scan(
    path: string,
    options: { readonly maxLineBytes: number; readonly onLine: (number: number, text: () => string) => boolean },
  ): FileAnswer<{ readonly binary: boolean; readonly complete: boolean }>
}
