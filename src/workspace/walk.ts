/** Yields every file worth searching below a folder, opening each folder by descriptor from its parent. */

import { type Dirent, fstatSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { attempt } from '../kit/errors.ts'
import type { EntryType } from './contract.ts'
import { explain, flags, type Handle, hold, realPath, slot } from './descriptor.ts'
import type { Locator } from './locate-path.ts'
import { drain } from './read-file.ts'

const MAX_DEPTH = 64
const MAX_IGNORE_BYTES = 256 * 1024

type OnSkip = (path: string, why: string) => void

type Visit = { readonly folder: Handle; readonly path: string; readonly depth: number; readonly above: readonly Rules[] }

export function* walk(locator: Locator, given: string, onSkip: OnSkip = () => {}): Generator<string> {
  const found = locator.locate(given, 'read')
  if (!found.ok) return onSkip(given, found.message)
  using held = found.held
  const path = locator.show(found.real)
  if (found.stat.isFile()) yield path
  if (!found.stat.isDirectory()) return
  yield* visit({ locator, onSkip }, { folder: held, path: path === '.' ? '' : path, depth: 0, above: rulesAbove(locator, path) })
}

type WalkContext = { readonly locator: Locator; readonly onSkip: OnSkip }

function* visit(walk: WalkContext, { folder, path, depth, above }: Visit): Generator<string> {
  const entries = readable(walk, folder, path)
  const own = entries.some(({ name }) => name === '.gitignore') ? [...above, { from: path, rules: rulesOf(folder) }] : above
  for (const { name, type } of entries) {
    const child = join(path, name)
    if (type === 'file' && !isIgnored(own, child, false)) yield child
    if (type !== 'directory' || name === '.git' || name === 'node_modules' || isIgnored(own, child, true)) continue
    yield* enter(walk, { folder, path: child, depth: depth + 1, above: own }, name)
  }
}

function* enter(walk: WalkContext, { folder, path, depth, above }: Visit, name: string): Generator<string> {
  if (depth > MAX_DEPTH) return walk.onSkip(path, `more than ${MAX_DEPTH} folders deep`)
  const child = openChild(walk, folder, { name, path })
  if (child === undefined) return
  using held = child
  yield* visit(walk, { folder: held, path, depth, above })
}

function openChild(
  { locator, onSkip }: WalkContext,
  folder: Handle,
  { name, path }: { readonly name: string; readonly path: string },
): Handle | undefined {
  try {
    const held = hold(slot(folder, name), flags.childFolder)
    const real = realPath(held)
    const verdict = real === undefined ? undefined : locator.check(real, 'read')
    if (verdict?.ok) return held
    held[Symbol.dispose]()
    onSkip(path, verdict?.ok === false ? verdict.rule : 'removed meanwhile')
  } catch (error) {
    onSkip(path, explain(error))
  }
}

function readable({ onSkip }: WalkContext, folder: Handle, path: string): Child[] {
  try {
    return children(folder)
  } catch (error) {
    onSkip(path, explain(error))
    return []
  }
}

/** @returns the .gitignore rules of the folders between the root and the start of the walk */
function rulesAbove(locator: Locator, path: string): Rules[] {
  if (path === '.' || path.startsWith('/')) return []
  const names = path.split('/')
  return names.flatMap((_, depth) => rulesAt(locator, names.slice(0, depth).join('/')))
}

function rulesAt(locator: Locator, from: string): Rules[] {
  const found = locator.locate(from === '' ? '.' : from, 'read')
  if (!found.ok) return []
  using held = found.held
  return [{ from, rules: rulesOf(held) }]
}

/** An unreadable .gitignore never stops the search. */
function rulesOf(folder: Handle): Rules['rules'] {
  try {
    using looked = hold(slot(folder, '.gitignore'), flags.lookHere)
    if (!fstatSync(looked.fd).isFile()) return []
    using file = hold(slot(looked), flags.read)
    return parseIgnore(new TextDecoder().decode(drain(file, MAX_IGNORE_BYTES)))
  } catch {
    return []
  }
}

type Ignore = { readonly glob: Bun.Glob; readonly negated: boolean; readonly folderOnly: boolean }

/** Parses .gitignore patterns closely enough for a search: order, negation, anchoring, folder-only rules; the caller reads the files. */
export function parseIgnore(text: string): Ignore[] {
  return text.split(/\r?\n/).flatMap((line) => parseLine(line))
}

function parseLine(line: string): Ignore[] {
  const trimmed = line.replace(/(?<!\\)\s+$/, '')
  if (trimmed === '' || trimmed.startsWith('#')) return []
  const negated = trimmed.startsWith('!')
  const pattern = trimmed.slice(negated ? 1 : 0)
  const folderOnly = pattern.endsWith('/')
  const body = folderOnly ? pattern.slice(0, -1) : pattern
  if (body === '') return []
  return [{ glob: globOf(body), negated, folderOnly }]
}

/**
 * A pattern with a slash inside starts at the .gitignore's folder; without one it matches a name anywhere below. Braces are plain
 * characters.
 */
function globOf(body: string): Bun.Glob {
  const literal = body.replaceAll(/(?<!\\)([{}])/g, '\\$1').replace(/^(\/?)!/, '$1\\!')
  if (!body.includes('/')) return new Bun.Glob(`**/${literal}`)
  return new Bun.Glob(literal.startsWith('/') ? literal.slice(1) : literal)
}

/** The rules of one file, and the folder from which they start. */
export type Rules = { readonly from: string; readonly rules: readonly Ignore[] }

/** Decides by the rules of the nearest folder that has one for the path. @param above the farthest first */
export function isIgnored(above: readonly Rules[], path: string, isFolder: boolean): boolean {
  for (const { from, rules } of above.toReversed()) {
    const verdict = ignored(rules, from === '' ? path : path.slice(from.length + 1), isFolder)
    if (verdict !== undefined) return verdict
  }
  return false
}

/** @returns whether one folder's rules ignore a path below it; undefined when no rule matches. The last matching rule decides. */
function ignored(rules: readonly Ignore[], path: string, isFolder: boolean): boolean | undefined {
  const last = rules.findLast((rule) => (isFolder || !rule.folderOnly) && rule.glob.match(path))
  return last === undefined ? undefined : !last.negated
}

type Child = { readonly name: string; readonly type: EntryType }

/** Reads the entries of one folder through its descriptor, ordered by name (UTF-16 code units). @throws the system's error */
export function children(folder: Handle): Child[] {
  return readdirSync(slot(folder), { withFileTypes: true })
    .map((entry) => ({ name: entry.name, type: typeOf(folder, entry) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

function typeOf(folder: Handle, entry: Dirent): EntryType {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'directory'
  if (entry.isSymbolicLink()) return 'link'
  return entry.isFIFO() || entry.isSocket() || entry.isCharacterDevice() || entry.isBlockDevice() ? 'other' : looked(folder, entry.name)
}

/** Some file systems do not give the type in the listing. */
function looked(folder: Handle, name: string): EntryType {
  const stat = lstatSync(slot(folder, name), { throwIfNoEntry: false })
  if (stat?.isFile()) return 'file'
  if (stat?.isDirectory()) return 'directory'
  return stat?.isSymbolicLink() ? 'link' : 'other'
}

/** @returns the size of a file in bytes; undefined when the file is gone or cannot be accessed */
export function sizeOf(folder: Handle, name: string): number | undefined {
  return attempt(() => lstatSync(slot(folder, name), { throwIfNoEntry: false })?.size)
}
