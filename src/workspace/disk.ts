/** Tells the gate where paths on the disk lead, and which names behind links a shell pattern matches. */

import { lstatSync, readdirSync, statSync } from 'node:fs'
import { attempt } from '../kit/errors.ts'
import { entriesIn } from '../kit/proc.ts'
import type { Disk } from '../security/targets/link.ts'
import { matchesPattern } from '../security/targets/path.ts'
import { realPlace } from './real-place.ts'

const MAX_NAMES = 20_000

export const disk: Disk = {
  real: (path) => realPlace(path),
  linked,
  isFile: (path) => attempt(() => statSync(path).isFile()) ?? false,
  state(path) {
    const stat = attempt(() => lstatSync(path, { throwIfNoEntry: false }))
    return stat && { kind: stat.isFile() ? 'file' : stat.isDirectory() ? 'folder' : 'other', mode: stat.mode & 0o7777 }
  },
  names: (folder) => attempt(() => readdirSync(folder)),
}

/** `linked`: the match is a link, or the pattern matched a link on the way to it. */
type Match = { readonly path: string; readonly linked: boolean }

function linked(pattern: string): readonly string[] | undefined {
  const parts = pattern.split('/').filter(Boolean)
  const first = parts.findIndex(hasWildcard)
  const budget = { names: MAX_NAMES }
  // The part before the first pattern is resolved together with the path itself.
  let found: readonly Match[] = [
    {
      path: parts
        .slice(0, Math.max(0, first))
        .map((part) => `/${part}`)
        .join(''),
      linked: false,
    },
  ]
  for (const part of first < 0 ? [] : parts.slice(first)) {
    found = found.flatMap((at) => (hasWildcard(part) ? fitting(at, part, budget) : named(at, part)))
    budget.names -= found.length
    if (budget.names < 0) return undefined
  }
  return found.filter((match) => match.linked).map(({ path }) => path)
}

function hasWildcard(part: string): boolean {
  return /[*?[]/.test(part)
}

/** Returns the matches in one folder. Only a pattern that begins with a dot matches a name that begins with a dot. */
function fitting({ path, linked }: Match, pattern: string, budget: { names: number }): readonly Match[] {
  const entries = entriesIn(path || '/')
  budget.names -= entries.length
  if (budget.names < 0) return []
  return entries
    .filter(({ name }) => (pattern.startsWith('.') || !name.startsWith('.')) && matchesPattern(pattern, name))
    .map((entry) => ({ path: `${path}/${entry.name}`, linked: linked || entry.isSymbolicLink() }))
}

function named({ path, linked }: Match, part: string): readonly Match[] {
  const stat = attempt(() => lstatSync(`${path}/${part}`, { throwIfNoEntry: false }))
  return stat ? [{ path: `${path}/${part}`, linked: linked || stat.isSymbolicLink() }] : []
}
