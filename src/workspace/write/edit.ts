/** Replaces one exact, unique piece of a text file; a failure says where the text nearly matches. */

import type { Stats } from 'node:fs'
import { sha256 } from '../../kit/sha256.ts'
import type { Edited, EditPreview, FileRefusal } from '../contract.ts'
import { type LocatedFile, type Locator, openRegular, quote, reading } from '../locate-path.ts'
import { drain } from '../read-file.ts'
import { place } from './place.ts'
import { encode, type KeepOptions, replace } from './write-file.ts'

const MAX_BYTES = 16 * 1024 * 1024

type TextEdit = { readonly find: string; readonly put: string }
type Match = { readonly ok: true; readonly at: number; readonly find: string; readonly put: string; readonly note?: string }

export function editText(locator: Locator, given: string, change: TextEdit, keeping: KeepOptions = {}): Edited | FileRefusal {
  const planned = plan(locator, given, change)
  if (!planned.ok) return planned
  const { before, after, match } = planned
  const bytes = store({ locator, given, text: after, basis: before.stat, keeping })
  if (typeof bytes !== 'number') return bytes
  const { path } = before
  const seen = [{ path, was: sha256(before.text), sha256: sha256(after) }]
  return { ok: true, path, line: lineAt(before.text, match.at), bytes, note: match.note, seen }
}

/** Returns the file's text before and after an edit, and writes nothing. */
export function previewEdit(locator: Locator, given: string, change: TextEdit): EditPreview | FileRefusal {
  const planned = plan(locator, given, change)
  return planned.ok ? { ok: true, path: planned.before.path, before: planned.before.text, after: planned.after } : planned
}

function plan(locator: Locator, given: string, change: TextEdit): { ok: true; before: Current; after: string; match: Match } | FileRefusal {
  if (change.find === '') return { ok: false, message: 'the text to replace is empty; write the whole file instead' }
  if (change.find === change.put) return { ok: false, message: 'the new text equals the old: nothing to do' }
  const before = current(locator, given)
  if (!before.ok) return before
  const match = findOnce(given, before.text, change)
  if (!match.ok) return match
  const { at, find, put } = match
  return { ok: true, before, after: before.text.slice(0, at) + put + before.text.slice(at + find.length), match }
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
  if (at !== undefined) return { ok: true, at, find, put }
  if (!text.includes('\r\n') || !find.includes('\n')) return { ok: false, message: notFound(given, text, find) }
  return findCrlf(given, text, { find, put })
}

/** Models write LF. In a file with CRLF the search matches the same lines, and the new lines get CRLF too. */
function findCrlf(given: string, text: string, { find, put }: TextEdit): Match | FileRefusal {
  const windows = { find: crlf(find), put: crlf(put) }
  const exact = places(text, windows.find)
  if (exact.length > 1) return ambiguous(given, text, exact)
  const [at] = exact
  if (at === undefined) return { ok: false, message: notFound(given, text, find) }
  return { ok: true, at, ...windows, note: 'the file has CRLF line endings; they were kept' }
}

function crlf(text: string): string {
  return text.replaceAll(/\r?\n/g, '\r\n')
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
  let line = 1
  for (let next = text.indexOf('\n'); next >= 0 && next < at; next = text.indexOf('\n', next + 1)) line++
  return line
}
