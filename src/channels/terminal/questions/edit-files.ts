/** Opens the new text of changed files in the person's editor, on copies in a private folder, and returns what was saved. */

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { textOf } from '../../../host/changes/file-diff.ts'
import type { ChangeSet } from '../../../runtime/changes.ts'
import type { AskPerson } from './approval-prompt.ts'

export type Edited =
  | { readonly ok: true; readonly files: ReadonlyMap<string, Uint8Array> }
  | { readonly ok: false; readonly message: string }

const [mostFiles, mostBytes] = [20, 1024 * 1024]

type Copy = { readonly path: string; readonly copy: string; readonly content: Uint8Array }

/** `files` holds only what the person changed. */
export async function editFiles({ set, ask }: { readonly set: ChangeSet; readonly ask: AskPerson }): Promise<Edited> {
  const texts = set.changes.flatMap((change) => {
    const content = change.after?.kind === 'file' ? set.content(change, 'after', mostBytes) : undefined
    return content !== undefined && textOf(content) !== undefined ? [{ path: change.path, content }] : []
  })
  if (texts.length === 0) return { ok: false, message: 'there is no new text to edit' }
  if (texts.length > mostFiles)
    return { ok: false, message: `${texts.length} files are too many for an editor, at most ${mostFiles}; choose some with s first` }
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-edit-'))
  try {
    const copies = texts.map(({ path, content }, at): Copy => ({ path, content, copy: join(folder, placeOf(path, at)) }))
    for (const { copy, content } of copies) {
      mkdirSync(dirname(copy), { recursive: true, mode: 0o700 })
      writeFileSync(copy, content, { mode: 0o600 })
    }
    const code = await ask.edit(copies.map(({ copy }) => copy))
    if (code !== 0) return { ok: false, message: `the editor ended with ${code ?? 'an error'}; nothing was taken over` }
    const files = new Map(copies.flatMap(savedIn))
    return files.size > 0 ? { ok: true, files } : { ok: false, message: 'nothing was edited' }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Keeps the name, from which an editor knows the language; a number keeps two files apart. */
function placeOf(path: string, at: number): string {
  return join(String(at + 1), path.slice(path.lastIndexOf('/') + 1))
}

function savedIn({ path, copy, content }: Copy): readonly (readonly [string, Uint8Array])[] {
  // An editor may remove a file that it was told to; that says nothing about the change.
  if (!existsSync(copy)) return []
  const saved = new Uint8Array(readFileSync(copy))
  return Buffer.compare(saved, content) === 0 ? [] : [[path, saved]]
}
