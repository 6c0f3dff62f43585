/** Builds change sets for tests from the texts of two folders. */

import { sha256 } from '../../kit/sha256.ts'
import type { Change, ChangeSet, EntryState } from '../../runtime/changes.ts'

/** A text or bytes is a file, `{ link }` a link, `{ mode, text }` a file with that mode, `'folder/'` as the whole value a folder. */
export type Side = string | Uint8Array | { readonly link: string } | { readonly mode: number; readonly text?: string } | null

export type Sides = { readonly [path: string]: readonly [before: Side, after: Side] }

export function changeSetOf(sides: Sides, stage: ChangeSet['stage'] = 'made'): ChangeSet {
  return {
    stage,
    changes: Object.entries(sides).map(([path, [before, after]]) => ({ path, ...stateOf('before', before), ...stateOf('after', after) })),
    content({ path }: Change, side, maxBytes) {
      const bytes = bytesOf(sides[path]?.[side === 'before' ? 0 : 1] ?? null)
      return bytes && bytes.length <= maxBytes ? bytes : undefined
    },
  }
}

export const folder: Side = { mode: 0o40755 }

function stateOf(name: 'before' | 'after', side: Side): { readonly before?: EntryState; readonly after?: EntryState } {
  if (side === null) return {}
  if (side === folder) return { [name]: { kind: 'folder', mode: 0o755 } }
  if (typeof side === 'object' && 'link' in side) return { [name]: { kind: 'link', mode: 0o777, target: side.link } }
  const bytes = bytesOf(side) ?? new Uint8Array()
  const mode = typeof side === 'object' && 'mode' in side ? side.mode : 0o644
  return { [name]: { kind: 'file', mode, size: bytes.length, sha256: sha256(bytes) } }
}

function bytesOf(side: Side): Uint8Array | undefined {
  if (typeof side === 'string') return new TextEncoder().encode(side)
  if (side instanceof Uint8Array) return side
  return side !== null && side !== folder && 'mode' in side ? new TextEncoder().encode(side.text ?? '') : undefined
}
