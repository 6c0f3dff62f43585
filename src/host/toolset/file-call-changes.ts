/**
 * Computes what a call of a file tool would change, so that the person who is asked sees the exact difference, and keeps what it replaces.
 */

import { lazy } from '../../kit/lazy.ts'
import { sha256 } from '../../kit/sha256.ts'
import { count, cut, quote } from '../../kit/text.ts'
import type { Results } from '../../memory/conversations/results.ts'
import type { Change, ChangeSet, EntryState } from '../../runtime/changes.ts'
import type { Call } from '../../runtime/event.ts'
import type { Policy } from '../../security/policy.ts'
import type { Originals, Workspace } from '../../workspace/contract.ts'
import { inFormOf } from '../../workspace/write/write-file.ts'
import type * as hunks from '../changes/hunks.ts'
import type { Judging } from '../transactions/reviewed-views.ts'

type WorkspaceFiles = Pick<Workspace, 'stat' | 'readBytes' | 'previewEdit'>

/** A larger file is described by its size alone. */
const mostBytes = 16 * 1024 * 1024

/** Returns undefined when the call changes no file, or when it will fail: an edit whose old text is not in the file. */
export function changesOfFileCall({ name, input }: Call, files: WorkspaceFiles): ChangeSet | undefined {
  const { path } = input
  if (typeof path !== 'string') return undefined
  if (name === 'file_write' && typeof input.content === 'string') return written(files, path, input.content)
  if (name === 'file_delete') return deleted(files, path)
  if (name !== 'file_edit' || typeof input.old !== 'string' || typeof input.new !== 'string') return undefined
  const edit = files.previewEdit(path, { find: input.old, put: input.new })
  return edit.ok ? setOf(edit.path, { mode: modeOf(files, path), before: bytesOf(edit.before), after: bytesOf(edit.after) }) : undefined
}

function written(files: WorkspaceFiles, path: string, content: string): ChangeSet | undefined {
  const found = files.stat(path)
  if (!found.ok) return found.missing === undefined ? undefined : setOf(path, { mode: 0o644, after: bytesOf(content) })
  if (found.type !== 'file') return undefined
  const read = files.readBytes(path, { maxBytes: mostBytes })
  const before = read.ok ? read.bytes : found.size
  const { bytes, notes } = read.ok ? inFormOf(read.bytes, content) : { bytes: bytesOf(content), notes: [] }
  return { ...setOf(found.path, { mode: found.mode, before, after: bytes }), notes }
}

function deleted(files: WorkspaceFiles, path: string): ChangeSet | undefined {
  const found = files.stat(path)
  if (!found.ok) return undefined
  if (found.type !== 'file')
    return { stage: 'proposed', changes: [{ path: found.path, before: { kind: 'folder', mode: found.mode & 0o7777 } }], content: none }
  const read = files.readBytes(path, { maxBytes: mostBytes })
  return setOf(found.path, { mode: found.mode, before: read.ok ? read.bytes : found.size })
}

/** A number is the size of content that could not be read. */
type Sides = { readonly mode: number; readonly before?: Uint8Array | number; readonly after?: Uint8Array }

function setOf(path: string, { mode, before, after }: Sides): ChangeSet {
  const change: Change = {
    path,
    ...(before === undefined ? {} : { before: stateOf(before, mode) }),
    ...(after === undefined ? {} : { after: stateOf(after, mode) }),
  }
  return {
    stage: 'proposed',
    changes: [change],
    content(_change, side, maxBytes) {
      const content = side === 'before' ? before : after
      return content instanceof Uint8Array && content.length <= maxBytes ? content : undefined
    },
  }
}

function stateOf(content: Uint8Array | number, mode: number): EntryState {
  const file = { kind: 'file', mode } as const
  return content instanceof Uint8Array ? { ...file, size: content.length, sha256: sha256(content) } : { ...file, size: content }
}

function modeOf(files: WorkspaceFiles, path: string): number {
  const found = files.stat(path)
  return found.ok ? found.mode : 0o644
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

const none = () => undefined

/** Longer files are not compared, and more lines are not shown: the model reads the file instead. */
const mostShown = { bytes: 1024 * 1024, lines: 120, columns: 400, files: 20 }

type Hunks = typeof hunks

/** Refuses to replace or delete files that changed since the conversation last read or wrote them. It then has seen them as they are. */
function refuseUnseen(results: Results, conversationId: string, hunks: () => Hunks): Originals['unseen'] {
  return (files, put) => {
    const known = results.seenFiles(conversationId)
    const changed = files.flatMap(({ path, read }) => {
      const seen = known.get(path)
      const now = seen === undefined ? undefined : read()
      const digest = now ? sha256(now) : ''
      if (seen === undefined || seen === digest || (now && put && Buffer.compare(now, put) === 0)) return []
      return [{ path, now, sha256: digest }]
    })
    const shown = changed.slice(0, mostShown.files)
    if (shown.length === 0) return undefined
    const names = shown.map(({ path }) => quote(path)).join(', ')
    const what = changed.length === 1 ? 'it, so it was left as it is' : 'them, so they were left as they are'
    const message = `${names} changed since this conversation last read or wrote ${what}. Keep what is new, unless it must go; the next try is not refused`
    const output = shown.map(({ path, now }) => differenceOf(hunks(), path, { seen: results.seenText(conversationId, path), now, put }))
    const seen = shown.map(({ path, sha256 }) => ({ path, sha256 }))
    return { ok: false, message, shown: { output: output.join('\n'), metadata: { seen } } }
  }
}

type Versions = { readonly seen?: string; readonly now?: Uint8Array; readonly put?: Uint8Array }

/** Compares with what the conversation knew or, where its results do not hold that, with what it would write. */
function differenceOf({ diffTexts, hunkHeader }: Hunks, path: string, { seen, now, put }: Versions): string {
  const text = now && now.length <= mostShown.bytes ? new TextDecoder().decode(now) : undefined
  const other = seen ?? (put && new TextDecoder().decode(put))
  if (text === undefined || other === undefined || other.length > mostShown.bytes) return `Read ${quote(path)} to see what changed.`
  const { hunks } = seen === undefined ? diffTexts(text, other) : diffTexts(other, text)
  const lines = hunks.flatMap((hunk) => [hunkHeader(hunk), ...hunk.lines.map(({ mark, text }) => mark + cut(text, mostShown.columns))])
  const rest = lines.length - mostShown.lines
  const head = seen === undefined ? `What the write would change in ${quote(path)} as it is now:` : `What changed in ${quote(path)}:`
  return [head, ...lines.slice(0, mostShown.lines), ...(rest > 0 ? [`… ${count(rest, 'more line')}; read the file`] : [])].join('\n')
}

type FileOriginals = Originals & {
  /** Loads the store, which `unseen` needs too. */
  ready(): Promise<unknown>
  /** Does the work, with the store loaded, which `keep` needs, while no change set enters the workspace or leaves it. */
  alone<T>(work: () => Promise<T>): Promise<T>
}

/** Imported on demand: many conversations write nothing. */
export const loadReviewedViews = () => import('../transactions/reviewed-views.ts')

type Whose = { readonly conversation: string; run(): string; readonly results?: Results }

/** Keeps what file tools replace or delete in the store of change sets, which is loaded before the first write of a conversation. */
export function createFileOriginals(setup: Judging['setup'], policy: Policy, whose: Whose): FileOriginals {
  const opened = lazy(async () => {
    const [{ openJudgedChanges }, hunks] = await Promise.all([loadReviewedViews(), import('../changes/hunks.ts')])
    const store = openJudgedChanges(setup, policy)
    return { store, originals: store.originals(whose), hunks }
  })
  const now = () => {
    const made = opened.current()
    if (made === undefined) throw new Error('the store of changes is not open')
    return made
  }
  return {
    unseen: whose.results && refuseUnseen(whose.results, whose.conversation, () => now().hunks),
    ready: opened.get,
    alone: async (work) => (await opened.get()).store.alone(work),
    keep: (write) => now().originals.keep(write),
    delete: async (paths, by) => (await opened.get()).originals.delete(paths, by),
  }
}
