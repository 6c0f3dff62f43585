/** Replaces one exact, unique piece of a text file; a failure says where the text nearly matches. */

import type { Stats } from 'node:fs'
import { sha256 } from '../../kit/sha256.ts'
import type { Edited, EditPreview, FileRefusal } from '../contract.ts'
import { type LocatedFile, type Locator, openRegular, quote, reading } from '../locate-path.ts'
import { drain } from '../read-file.ts'
import { place } from './place.ts'
import { encode, endNotes, hasOwnEnds, type KeepOptions, keepEnds, replace } from './write-file.ts'

const MAX_BYTES = 16 * 1024 * 1024

type TextEdit = { readonly find: string; readonly put: string }
type Match = { readonly ok: true; readonly at: number; readonly find: string; readonly put: string }

export function editText(locator: Locator, given: string, change: TextEdit, keeping: KeepOptions = {}): Edited | FileRefusal {
  const planned = plan(locator, given, change)
  if (!planned.ok) return planned
  const { before, after, match, note } = planned
  const bytes = store({ locator, given, text: after, basis: before.stat, keeping })
  if (typeof bytes !== 'number') return bytes
  const { path } = before
  const seen = [{ path, was: sha256(before.text), sha256: sha256(after) }]
  return { ok: true, path, line: lineAt(before.text, match.at), bytes, note, seen }
}

/** Returns the file's text before and after an edit, and writes nothing. */
export function previewEdit(locator: Locator, given: string, change: TextEdit): EditPreview | FileRefusal {
  const planned = plan(locator, given, change)
  return planned.ok ? { ok: true, path: planned.before.path, before: planned.before.text, after: planned.after } : planned
}

type Planned = { readonly ok: true; readonly before: Current; readonly after: string; readonly match: Match; readonly note?: string }

function plan(locator: Locator, given: string, change: TextEdit): Planned | FileRefusal {
  if (change.find === '') return { ok: false, message: 'the text to replace is empty; write the whole file instead' }
  if (change.find === change.put) return { ok: false, message: 'the new text equals the old: nothing to do' }
  const before = current(locator, given)
  if (!before.ok) return before
  const match = findOnce(given, before.text, change)
  if (!match.ok) return match
  const { at, find, put } = match
  const after = before.text.slice(0, at) + put + before.text.slice(at + find.length)
  if (after === before.text) return { ok: false, message: 'the new text equals the old but for line ends, which stay: nothing to do' }
  return { ok: true, before, after, match, note: endNotes(before.text, change.put, after)[0] }
}

type Current = { readonly ok: true; readonly text: string; readonly path: string; readonly stat: Stats }

/** Failure messages show the file's text, so an edit also needs permission to read. */
function current(locator: Locator, given: string): Current | FileRefusal {
  const found = openRegular(locator, given, 'read')
  if (!found.ok) return found
  using held = found.held
  if (found.stat.size > MAX_BYTES)
    return { ok: false, message: `${quote(given)} is too large to edit: ${found.stat.size} bytes, at most ${MAX_BYTES}` }
  return reading(given, held, (file) => decoded(locator, given, found, drain(file, MAX_BYTES + 1)))
}

function decoded(locator: Locator, given: string, { real, stat }: LocatedFile, bytes: Uint8Array): Current | FileRefusal {
  try {
    // The byte order mark stays part of the text; otherwise the edit would drop it.
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    return { ok: true, text, path: locator.show(real), stat }
  } catch {
    return { ok: false, message: `${quote(given)} is not valid UTF-8; an edit would damage its other bytes` }
  }
}

type Storing = {
  readonly locator: Locator
  readonly given: string
  readonly text: string
  readonly basis: Stats
  readonly keeping: KeepOptions
}

function store({ locator, given, text, basis, keeping }: Storing): number | FileRefusal {
  const bytes = encode(given, text)
  if (!(bytes instanceof Uint8Array)) return bytes
  const spot = place(locator, given)
  if (!spot.ok) return spot
  using _ = spot.folder
  return replace({ spot, given, bytes, basis, keeping }) ?? bytes.length
}

function findOnce(given: string, text: string, { find, put }: TextEdit): Match | FileRefusal {
  const exact = places(text, find)
  if (exact.length > 1) return ambiguous(given, text, exact)
  const [at] = exact
  if (at === undefined) return findLoosely(given, text, { find, put })
  // A text that differs in its line ends alone is meant to change them.
  const isMeant = hasOwnEnds(text, put) || toLf(find) === toLf(put)
  return { ok: true, at, find, put: isMeant ? put : keepEnds(find, put, { file: text, at }) }
}

/** Models write LF. The search matches the same lines with other line ends, which stay. */
function findLoosely(given: string, text: string, { find, put }: TextEdit): Match | FileRefusal {
  const lines = toLf(find).split('\n').map(RegExp.escape)
  const pattern = new RegExp(lines.join('(?:\\r\\n|(?<!\\r)\\n|\\r(?!\\n))'), 'g')
  const found: RegExpExecArray[] = []
  for (let match = lines.length > 1 ? pattern.exec(text) : null; match && found.length < 1_000; match = pattern.exec(text)) {
    found.push(match)
    pattern.lastIndex = match.index + 1
  }
  const positions = found.map(({ index }) => index)
  if (positions.length > 1) return ambiguous(given, text, positions)
  const [match] = found
  if (match === undefined) return { ok: false, message: notFound(given, text, find) }
  const { 0: old, index: at } = match
  return { ok: true, at, find: old, put: keepEnds(old, toLf(put), { file: text, at }) }
}

function toLf(text: string): string {
  return text.replaceAll('\r\n', '\n')
}

/** Every position of `find`, overlapping ones included; stops counting at 1,000. */
function places(text: string, find: string): number[] {
  const found: number[] = []
  for (let at = text.indexOf(find); at >= 0 && found.length < 1_000; at = text.indexOf(find, at + 1)) found.push(at)
  return found
}

function ambiguous(given: string, text: string, found: readonly number[]): FileRefusal {
  const lines = found.slice(0, 5).map((at) => lineAt(text, at))
  const dots = found.length > 5 ? ', …' : ''
  const times = found.length >= 1_000 ? '1,000 times or more' : `${found.length} times`
  return {
    ok: false,
    message: `the old text stands ${times} in ${quote(given)} (lines ${lines.join(', ')}${dots}); add neighbouring lines until it is unique`,
  }
}

/** The most common mistakes are wrong indentation and a correct first line with wrong lines after it; the message shows both. */
function notFound(given: string, text: string, find: string): string {
  const head = `the old text is not in ${quote(given)}`
  if (text === '' || text === '\ufeff') return `${head}: the file is empty; write the whole file instead`
  const first = find
    .split('\n')
    .find((line) => line.trim() !== '')
    ?.trim()
  const lines = text.split(/\r?\n/)
  const near = first === undefined ? -1 : lines.findIndex((line) => line.trim() === first || (first.length > 8 && line.includes(first)))
  if (near < 0) return `${head}; read the file and copy the text exactly`
  const excerpt = lines.slice(near, near + Math.min(find.trimEnd().split('\n').length, 5)).join('\n')
  return `${head}; line ${near + 1} is near, but white space or a later line differs. There it says:\n${excerpt.slice(0, 1_000)}`
}

function lineAt(text: string, at: number): number {
  return text.slice(0, at).split(text.includes('\n') ? '\n' : '\r').length
}
