/** Declares the workspace functions that the file tools use. */

export type Refusal = { readonly ok: false; readonly denied?: string; readonly message: string }

type Answer<T> = ({ readonly ok: true; readonly path: string } & T) | Refusal

export type Entry = { readonly path: string; readonly type: 'file' | 'directory' | 'link' | 'other'; readonly size?: number }

export type Page = {
  readonly text: string
  readonly firstLine: number
  readonly lastLine: number
  readonly totalLines?: number
  readonly size: number
  readonly more: boolean
  readonly cutLine: boolean
  readonly invalid: boolean
}

export type Listing = { readonly entries: readonly Entry[]; readonly total: number; readonly complete: boolean }

/** Whose call writes. */
export type By = { readonly call: string; readonly tool: string }

export type Files = {
  readonly root: string
  readText(path: string, options: { readonly offset?: number; readonly limit?: number; readonly maxBytes: number }): Answer<Page>
  list(path: string, options: { readonly depth?: number; readonly maxEntries: number }): Answer<Listing>
  writeText(path: string, text: string, by?: By): Answer<{ readonly bytes: number; readonly created: boolean }>
  editText(
    path: string,
    change: { readonly find: string; readonly put: string },
    by?: By,
  ): Answer<{ readonly line: number; readonly note?: string }>
  delete(
    path: string,
    options: { readonly recursive: boolean; readonly by?: By },
  ): Promise<Answer<{ readonly files: number; readonly folders: number }>>
  stat(path: string): Answer<{ readonly type: string }>
  walk(path: string, options?: { readonly onSkip?: (path: string, why: string) => void }): Iterable<string>
  scan(
    path: string,
    options: { readonly maxLineBytes: number; readonly onLine: (number: number, text: () => string) => boolean },
  ): Answer<{ readonly binary: boolean; readonly complete: boolean }>
}
