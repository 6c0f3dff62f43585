/** Yields every file worth searching below a folder, opening each folder by descriptor from its parent. */

import { fstatSync } from 'node:fs'
import { join } from 'node:path'
import { explain, flags, type Handle, hold, realPath, slot } from '../descriptor.ts'
import type { Locator } from '../locate-path.ts'
import { type Child, children } from '../open-folder.ts'
import { drain } from '../read-file.ts'
import { isIgnored, parseIgnore, type Rules } from './ignore.ts'

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

type Walk = { readonly locator: Locator; readonly onSkip: OnSkip }

function* visit(walk: Walk, { folder, path, depth, above }: Visit): Generator<string> {
  const entries = readable(walk, folder, path)
  const own = entries.some(({ name }) => name === '.gitignore') ? [...above, { from: path, rules: rulesOf(folder) }] : above
  for (const { name, type } of entries) {
    const child = join(path, name)
    if (type === 'file' && !isIgnored(own, child, false)) yield child
    if (type !== 'directory' || name === '.git' || name === 'node_modules' || isIgnored(own, child, true)) continue
    yield* enter(walk, { folder, path: child, depth: depth + 1, above: own }, name)
  }
}

function* enter(walk: Walk, { folder, path, depth, above }: Visit, name: string): Generator<string> {
  if (depth > MAX_DEPTH) return walk.onSkip(path, `more than ${MAX_DEPTH} folders deep`)
  const child = openChild(walk, folder, { name, path })
  if (child === undefined) return
  using held = child
  yield* visit(walk, { folder: held, path, depth, above })
}

function openChild(
  { locator, onSkip }: Walk,
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

function readable({ onSkip }: Walk, folder: Handle, path: string): Child[] {
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
