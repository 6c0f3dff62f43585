/**
 * Writes a complete new file beside the old one, flushes it, then renames it over the old one. The new text keeps the line ends, the byte
 * order mark and the encoding of the old one as far as it does not say otherwise.
 */

import { fchmodSync, fchownSync, fstatSync, fsyncSync, lstatSync, renameSync, type Stats, unlinkSync, writeSync } from 'node:fs'
import { hasCode, unlessCode, unlessMissing } from '../../kit/errors.ts'
import { sha256 } from '../../kit/sha256.ts'
import type { By, FileRefusal, Originals, WriteResult } from '../contract.ts'
import { explain, flags, type Handle, hold, slot } from '../descriptor.ts'
import { type Locator, quote } from '../locate-path.ts'
import { contentOf } from '../read-file.ts'
import { temporaryName } from '../sweep.ts'
import { place, type WritePlace } from './place.ts'

/** The keeper of the original, and the call that writes. */
export type KeepOptions = { readonly originals?: Originals; readonly by?: By }

export function writeText(locator: Locator, given: string, text: string, keeping: KeepOptions = {}): WriteResult | FileRefusal {
  const plain = encode(given, text)
  if (!(plain instanceof Uint8Array)) return plain
  return writeWhole(locator, given, (before) => (before ? inFormOf(before, text) : { bytes: plain, notes: [] }), keeping)
}

export function writeBytes(locator: Locator, given: string, bytes: Uint8Array, keeping: KeepOptions = {}): WriteResult | FileRefusal {
  return writeWhole(locator, given, () => ({ bytes, notes: [] }), keeping)
}

/** @param make returns the new content for the old one, which is undefined where there is no file */
function writeWhole(
  locator: Locator,
  given: string,
  make: (before: Uint8Array | undefined) => ReturnType<typeof inFormOf>,
  keeping: KeepOptions,
): WriteResult | FileRefusal {
  const before = contentOf(locator, given)
  const spot = place(locator, given)
  if (!spot.ok) return spot
  using _ = spot.folder
  const path = locator.show(spot.real)
  const { previous } = spot
  const { bytes, notes } = make(before?.bytes)
  const note = [`${bytes.length} bytes`, ...notes].join('; ')
  const failure =
    (previous && keeping.originals?.unseen?.([{ path, read: () => before?.bytes }], bytes)) ??
    replace({ spot, given, bytes, basis: keeping.originals && (before?.stat ?? previous), keeping })
  return failure ?? { ok: true, path, bytes: bytes.length, created: previous === undefined, seen: [{ path, sha256: sha256(bytes) }], note }
}

export function encode(given: string, text: string): Uint8Array | FileRefusal {
  if (text.isWellFormed()) return new TextEncoder().encode(text)
  return { ok: false, message: `${quote(given)} was not written: the text has half a surrogate pair, which UTF-8 cannot hold` }
}

type Replacement = {
  readonly spot: WritePlace
  readonly given: string
  readonly bytes: Uint8Array
  /** The file that the new text was made from: if the current file differs from it, nothing is replaced. */
  readonly basis?: Stats
  readonly keeping: KeepOptions
}

/** @returns undefined on success. On any failure before the rename the old file is unchanged and the temporary file is removed. */
export function replace({ spot, given, bytes, basis, keeping }: Replacement): FileRefusal | undefined {
  const temporary = temporaryName()
  try {
    fill(spot, temporary, bytes)
    if (basis !== undefined && !unchanged(spot, basis)) return changed(spot.folder, temporary, given)
    put(spot, temporary, keeping.originals?.keep(coming(spot, temporary, { bytes, by: keeping.by })))
  } catch (error) {
    remove(spot.folder, temporary)
    return { ok: false, message: `${quote(given)} was not written, what was there is unchanged: ${explain(error)}` }
  }
  return syncFolder(spot.folder, given)
}

function coming(
  { folder, name, real, previous, madeFolders }: WritePlace,
  temporary: string,
  { bytes, by }: { bytes: Uint8Array; by?: By },
) {
  return { real, folder, name, temporary, replaces: previous !== undefined, sha256: sha256(bytes), madeFolders, by }
}

function put({ folder, name }: WritePlace, temporary: string, backup: { forget(): void } | undefined): void {
  try {
    renameSync(slot(folder, temporary), slot(folder, name))
  } catch (error) {
    backup?.forget()
    throw error
  }
}

function fill({ folder, previous }: WritePlace, temporary: string, bytes: Uint8Array): void {
  using file = hold(slot(folder, temporary), flags.create, previous === undefined ? 0o666 : 0o600)
  if (previous !== undefined) likeBefore(file, previous)
  writeAll(file, bytes)
  fsyncSync(file.fd)
}

/**
 * Keeps owner and mode of a file of another owner in a writable folder; only root can keep the owner. The mode is set last, so that
 * permissions never widen.
 */
function likeBefore(file: Handle, previous: Stats): void {
  const now = fstatSync(file.fd)
  if (now.uid !== previous.uid || now.gid !== previous.gid) unlessCode(['EPERM'], () => fchownSync(file.fd, previous.uid, previous.gid))
  fchmodSync(file.fd, previous.mode & 0o777)
}

/** A full disk makes a write short without an error; only the next write fails. */
function writeAll(file: Handle, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) {
    const count = writeSync(file.fd, bytes, at, bytes.length - at)
    if (count === 0) throw new Error(`only ${at} of ${bytes.length} bytes could be written`)
    at += count
  }
}

function unchanged({ folder, name }: WritePlace, basis: Stats): boolean {
  const now = lstatSync(slot(folder, name), { throwIfNoEntry: false })
  return (
    now !== undefined && now.ino === basis.ino && now.size === basis.size && now.mtimeMs === basis.mtimeMs && now.ctimeMs === basis.ctimeMs
  )
}

function changed(folder: Handle, temporary: string, given: string): FileRefusal {
  remove(folder, temporary)
  return { ok: false, message: `${quote(given)} was changed by someone else meanwhile; read it again and repeat the call` }
}

function remove(folder: Handle, temporary: string): void {
  unlessMissing(() => unlinkSync(slot(folder, temporary)))
}

function syncFolder(folder: Handle, given: string): FileRefusal | undefined {
  try {
    using open = hold(slot(folder, '.'), flags.syncFolder)
    fsyncSync(open.fd)
  } catch (error) {
    // A folder that we may write but not read cannot be flushed; the file itself was flushed.
    if (hasCode(error, 'EACCES')) return undefined
    return { ok: false, message: `${quote(given)} was written but may not survive a power cut: ${explain(error)}` }
  }
}

/** Returns the new content of a file, and what happens to its form, for the model and for the person who is asked. */
export function inFormOf(before: Uint8Array, text: string): { readonly bytes: Uint8Array; readonly notes: readonly string[] } {
  const { encoding, old } = decoded(before)
  const bom = old.startsWith('\ufeff') && !text.startsWith('\ufeff') ? '\ufeff' : ''
  const put = bom + (hasOwnEnds(old, text) ? text : keepEnds(old, text))
  const isKept = encoding !== 'binary' && (encoding !== 'latin-1' || /^[\0-\xff]*$/.test(put))
  const isPlain = encoding === 'utf-8' || (encoding === 'latin-1' && /^[\0-\x7f]*$/.test(put))
  const said = isKept ? `the encoding stays ${encoding}` : `the encoding changes from ${encoding} to utf-8`
  return { bytes: encoded(put, isKept ? encoding : 'utf-8'), notes: [...endNotes(old, text, put), ...(isPlain ? [] : [said])] }
}

type Encoding = 'utf-8' | 'utf-16le' | 'utf-16be' | 'latin-1' | 'binary'

/** Text in UTF-16 without a byte order mark has its zeros on one side of each pair. `old` has the mark that the file begins with. */
function decoded(bytes: Uint8Array): { readonly encoding: Encoding; readonly old: string } {
  const zeros = [0, 1].map((side) => bytes.some((byte, at) => byte === 0 && at % 2 === side))
  const [first, second] = bytes
  const isLittle = (first === 0xff && second === 0xfe) || (bytes.length > 3 && !zeros[0] && zeros[1])
  const isBig = (first === 0xfe && second === 0xff) || (bytes.length > 3 && zeros[0] && !zeros[1])
  const encoding = isLittle ? 'utf-16le' : isBig ? 'utf-16be' : 'utf-8'
  try {
    const old = new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(bytes)
    if (!old.includes('\0')) return { encoding, old }
  } catch {}
  const hasZeros = zeros.includes(true)
  return { encoding: hasZeros ? 'binary' : 'latin-1', old: hasZeros ? '' : Buffer.from(bytes).toString('latin1') }
}

function encoded(text: string, encoding: Encoding): Uint8Array {
  if (encoding === 'latin-1') return Buffer.from(text, 'latin1')
  if (encoding === 'utf-16le') return Buffer.from(text, 'utf16le')
  return encoding === 'utf-16be' ? Buffer.from(text, 'utf16le').swap16() : new TextEncoder().encode(text)
}

/** A carriage return alone ends a line only in a file that has no other line end. */
function endsIn(text: string): RegExp {
  return text.includes('\n') || !text.includes('\r') ? /\r?\n/g : /\r/g
}

function kindOf(text: string): string {
  const ends = [...new Set(text.match(endsIn(text)))]
  return ends.length > 1 ? 'mixed' : (ends[0] ?? '').replace('\r', 'CR').replace('\n', 'LF')
}

/** Tells whether the text says which line ends it has: LF alone is what models write for any. */
export function hasOwnEnds(old: string, text: string): boolean {
  return text.includes('\r\n') || (kindOf(old) === 'CR' && text.includes('\r'))
}

/** @param given the text as the model wrote it @param put the whole file afterwards */
export function endNotes(old: string, given: string, put: string): readonly string[] {
  const [was, now] = [kindOf(old), kindOf(put)]
  if (was !== '' && now !== '' && was !== now) return [`line ends change from ${was} to ${now}`]
  return given.includes('\n') && now !== '' && now !== kindOf(given) ? [`line ends stay ${now}`] : []
}

type Line = { readonly text: string; readonly end: string }

function linesOf(text: string, ends: RegExp): readonly Line[] {
  const found = text.match(ends) ?? []
  return text.split(ends).map((line, at) => ({ text: line, end: found[at] ?? '' }))
}

/**
 * Gives the lines of `put` the ends that they had in `old`, and new ones the end of the line that they replace or follow. @param around
 * the file that `old` is a piece of, and where
 */
export function keepEnds(
  old: string,
  put: string,
  { file, at }: { readonly file: string; readonly at: number } = { file: old, at: 0 },
): string {
  const ends = endsIn(file)
  const [was, now] = [linesOf(old, ends), linesOf(put, /\r?\n/g)]
  const isSame = (a: Line | undefined, b: Line | undefined) => a?.text === b?.text && !a?.end === !b?.end
  const most = Math.min(was.length, now.length)
  let [head, tail] = [0, 0]
  while (head < most && isSame(was[head], now[head])) head++
  while (tail < most - head && isSame(was.at(-1 - tail), now.at(-1 - tail))) tail++
  const beside = () => file.slice(at + old.length).match(ends)?.[0] ?? file.slice(0, at).match(ends)?.at(-1)
  const own = was[head]?.end || was[head - 1]?.end || beside()
  const middle = now.slice(head, now.length - tail).map(({ text, end }) => ({ text, end: end && (own ?? end) }))
  return [...was.slice(0, head), ...middle, ...was.slice(was.length - tail)].map(({ text, end }) => text + end).join('')
}
