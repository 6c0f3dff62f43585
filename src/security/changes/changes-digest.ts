/** Computes the digest that names a change set: approvals, receipts and the record are bound to it. */

import { sha256 } from '../../kit/sha256.ts'
import type { Change, EntryState } from '../../runtime/changes.ts'

/**
 * SHA-256 of the canonical JSON of the changes, sorted by path, so that the order in which folders were read does not matter. It is written
 * out here because canonical() sorts the members of each object anew, which costs half a second for 30,000 changes.
 * @throws TypeError when a text has half a surrogate pair
 */
export function changesDigest(changes: readonly Change[]): string {
  const sorted = changes.toSorted((a, b) => order(a.path, b.path) || order(a.bytes ?? '', b.bytes ?? ''))
  return sha256(`[${sorted.map(change).join(',')}]`)
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function change({ path, bytes, before, after }: Change): string {
  const members = [
    ...(after === undefined ? [] : [`"after":${state(after)}`]),
    ...(before === undefined ? [] : [`"before":${state(before)}`]),
    ...(bytes === undefined ? [] : [`"bytes":${text(bytes)}`]),
    `"path":${text(path)}`,
  ]
  return `{${members.join(',')}}`
}

function state({ kind, mode, sha256, size, target }: EntryState): string {
  const digest = sha256 === undefined ? '' : `,"sha256":${text(sha256)}`
  const length = size === undefined ? '' : `,"size":${size}`
  const link = target === undefined ? '' : `,"target":${text(target)}`
  return `{"kind":"${kind}","mode":${mode}${digest}${length}${link}}`
}

function text(value: string): string {
  if (!value.isWellFormed()) throw new TypeError('no canonical JSON for a string with a lone surrogate')
  return JSON.stringify(value)
}
