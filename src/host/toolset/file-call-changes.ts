/**
 * Computes what a call of a file tool would change, so that the person who is asked sees the exact difference, and keeps what it replaces.
 */

import { lazy } from '../../kit/lazy.ts'
import { sha256 } from '../../kit/sha256.ts'
import type { Change, ChangeSet, EntryState } from '../../runtime/changes.ts'
import type { Call } from '../../runtime/event.ts'
import type { Policy } from '../../security/policy.ts'
import type { Originals, Workspace } from '../../workspace/contract.ts'
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
  return setOf(found.path, { mode: found.mode, before, after: bytesOf(content) })
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

type FileOriginals = Originals & {
  /** Does the work, with the store loaded, which `keep` needs, while no change set enters the workspace or leaves it. */
  alone<T>(work: () => Promise<T>): Promise<T>
}

type Whose = { readonly conversation: string; run(): string }

/** Keeps what file tools replace or delete in the store of change sets, which is loaded before the first write of a conversation. */
export function createFileOriginals(setup: Judging['setup'], policy: Policy, whose: Whose): FileOriginals {
  const opened = lazy(async () => {
    const { openJudgedChanges } = await import('../transactions/reviewed-views.ts')
    const store = openJudgedChanges(setup, policy)
    return { store, originals: store.originals(whose) }
  })
  return {
    alone: async (work) => (await opened.get()).store.alone(work),
    keep(write) {
      const made = opened.current()
      if (made === undefined) throw new Error('the store of changes is not open')
      return made.originals.keep(write)
    },
    delete: async (paths, by) => (await opened.get()).originals.delete(paths, by),
  }
}
