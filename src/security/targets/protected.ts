/** Names that other programs run or obey wherever they lie: never written by a tool, whether they exist yet or not. */

import { protectedNames } from './protected-names.ts'

const rows: readonly (readonly string[])[] = protectedNames.map((name) => name.split('/'))
/** Most names are none of these, and then no row has to be looked at. */
const firsts: ReadonlySet<string> = new Set(rows.flatMap(([first = '']) => first))

/** True for the name itself and all below. Takes a relative or an absolute path, already normalised. */
export function isProtectedName(path: string): boolean {
  const names = spelt(path).split('/').filter(Boolean)
  return names.some((name, at) => firsts.has(name) && rows.some((row) => row.every((part, below) => names[at + below] === part)))
}

/** The rows of protected names that begin with this name, in whatever spelling. */
export function protectedRows(name: string): readonly (readonly string[])[] {
  const first = spelt(name)
  return firsts.has(first) ? rows.filter((row) => row[0] === first) : []
}

/** A path as the list spells it, whatever of case, invisible characters and the ways of Windows stands in it. */
export function spelt(path: string): string {
  return unified(folded(path))
}

/** What Windows opens under another spelling: `.git:stream`, `a\\.git`, and the short names it gives to long ones. git looks for these too. */
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
 * File systems that ignore case or invisible characters open `.GIT` and `.g<ZWNJ>it` as `.git`: locks compare folded text.
 * Folding may refuse a harmless name, never let a locked one through; the workspace boundary compares exact text.
 */
export function folded(path: string): string {
  // Without these (anything but printable ASCII, a name that ends in a dot or a space) all that folding changes is the case.
  if (!/[^ -~]|[. ](?:\/|$)/.test(path)) return path.toLowerCase()
  return path.split('/').map(foldName).join('/')
}

function foldName(name: string): string {
  const plain = name.normalize('NFKC').toLowerCase()
  const bare = plain.replace(/\p{Default_Ignorable_Code_Point}/gu, '').replaceAll('/', '')
  return /[^. ]/.test(bare) ? bare.replace(/[. ]+$/, '') : bare
}
