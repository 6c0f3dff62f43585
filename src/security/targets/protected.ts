/** Recognises names that other programs execute or obey wherever they lie; tools never write them, whether they exist yet or not. */

import { protectedNames } from './protected-names.ts'

const rows: readonly (readonly string[])[] = protectedNames.map((name) => name.split('/'))
/** Most names start none of the rows, so this set avoids comparing the rows. */
const firsts: ReadonlySet<string> = new Set(rows.flatMap(([first = '']) => first))

/** True for the name itself and everything below it. Takes a normalised path, relative or absolute. */
export function isProtectedName(path: string): boolean {
  const names = spelt(path).split('/').filter(Boolean)
  return names.some((name, at) => firsts.has(name) && rows.some((row) => row.every((part, below) => names[at + below] === part)))
}

/** @returns the rows of protected names that begin with this name, in any spelling */
export function protectedRows(name: string): readonly (readonly string[])[] {
  const first = spelt(name)
  return firsts.has(first) ? rows.filter((row) => row[0] === first) : []
}

/** @returns the path in the list's spelling, without differences in case, invisible characters and Windows spellings */
export function spelt(path: string): string {
  return unified(folded(path))
}

/** Undoes the spellings that Windows opens as the same file: `.git:stream`, `a\\.git`, and its short names. git checks for these too. */
function unified(path: string): string {
  if (!/[:\\~]/.test(path)) return path
  return path
    .split(/[/\\]/)
    .map((name) => longName(name.replace(/(?<=.):.*/, '').replace(/[. ]+$/, '')))
    .join('/')
}

function longName(name: string): string {
  if (name === 'git~1') return '.git'
  return /^(?:gitmod~[1-4]|gi7eba~[1-9])$/.test(name) ? '.gitmodules' : name
}

/**
 * File systems that ignore case or invisible characters open `.GIT` and `.g<ZWNJ>it` as `.git`, so locks compare folded text. Folding may
 * refuse a harmless name but never allows a locked one; the workspace boundary compares exact text.
 */
export function folded(path: string): string {
  // Without non-ASCII characters, control characters, or a name that ends in a dot or space, folding only changes case.
  if (!/[^ -~]|[. ](?:\/|$)/.test(path)) return path.toLowerCase()
  return path.split('/').map(foldName).join('/')
}

function foldName(name: string): string {
  const plain = name.normalize('NFKC').toLowerCase()
  const bare = plain.replace(/\p{Default_Ignorable_Code_Point}/gu, '').replaceAll('/', '')
  return /[^. ]/.test(bare) ? bare.replace(/[. ]+$/, '') : bare
}
