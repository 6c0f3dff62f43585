/** Lists what a run of the tests consists of: which files, with which form of the program, the longest first. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** `fast` is what a person runs; `deep` is what takes long or needs large services. CI runs both. */
export type Tier = 'fast' | 'deep'

/** One process: a test file, with the form of the program under test that it drives. */
export type Entry = {
  readonly file: string
  readonly form: 'usual' | 'other'
  /** False for the tests beside the source that never start the program. */
  readonly startsProgram: boolean
  /** True for the tests of the deep tier that make databases in the PostgreSQL of the run. */
  readonly usesPostgres: boolean
}

export type Selection = {
  readonly root: string
  readonly tier: Tier
  /** Parts of file names; none means all. */
  readonly patterns: readonly string[]
}

/** These acceptance files also run with the other form of the program: from source, where the run has compiled it. */
const IN_BOTH_FORMS = [
  'test/seed-001.test.ts',
  'test/command-line/exit-codes.test.ts',
  'test/gate/estop.test.ts',
  'test/seed-002.test.ts',
  'test/seed-000.test.ts',
  'test/gate/secrets.test.ts',
  'test/dashboard/files.test.ts',
  'test/control/cli/control-answers.test.ts',
]

const DURATIONS = 'scripts/test/durations.json'
/** A shorter file never makes the end of a run longer, so the list leaves it out. */
const WORTH_LISTING_MS = 500

export function entriesOf({ root, tier, patterns }: Selection): Entry[] {
  const known = durations(root)
  const ms = (entry: Entry): number => known[keyOf(entry)] ?? 0
  return testFiles(root)
    .filter((file) => patterns.length === 0 || patterns.some((pattern) => file.includes(pattern)))
    .flatMap((file) => entriesOfFile(file, { root, tier, patterns }))
    .sort((a, b) => ms(b) - ms(a) || (keyOf(a) < keyOf(b) ? -1 : 1))
}

function entriesOfFile(file: string, { root, tier, patterns }: Selection): Entry[] {
  const text = readFileSync(join(root, file), 'utf8')
  const startsProgram = file.startsWith('test/') || text.includes('/support/cli.ts')
  const usesPostgres = tier === 'deep' && /from '[./]+support\/(engines|postgres|postgres-of-file)\.ts'/.test(text)
  const facts = { file, startsProgram, usesPostgres }
  const usual: Entry[] = isOfTier(tier, { file, text }) ? [{ ...facts, form: 'usual' }] : []
  const isInBothForms = tier === 'deep' && patterns.length === 0 && IN_BOTH_FORMS.includes(file)
  return isInBothForms ? [...usual, { ...facts, form: 'other' }] : usual
}

/** A file with "deep" in its name belongs to the deep tier alone; one that chooses its size or its engines by the tier belongs to both. */
function isOfTier(tier: Tier, { file, text }: { readonly file: string; readonly text: string }): boolean {
  const isDeepAlone = file.includes('.deep.test.')
  return tier === 'fast' ? !isDeepAlone : isDeepAlone || /from '[./]+(?:test\/)?support\/(?:tier|engines)\.ts'/.test(text)
}

/** Returns how many entries of the other tier the same patterns would run. */
export function countOfOtherTier(selection: Selection): number {
  const ran = new Set(entriesOf(selection).map(keyOf))
  return entriesOf({ ...selection, tier: selection.tier === 'fast' ? 'deep' : 'fast' }).filter((entry) => !ran.has(keyOf(entry))).length
}

/** Merges these milliseconds into the list that orders later runs. */
export function recordDurations(root: string, done: readonly (Entry & { readonly ms: number })[]): void {
  const ran = Object.fromEntries(done.map((entry) => [keyOf(entry), Math.round(entry.ms / 100) * 100]))
  const exist = new Set(testFiles(root).flatMap((file) => [keyOf({ file, form: 'usual' }), keyOf({ file, form: 'other' })]))
  const all = Object.entries({ ...durations(root), ...ran }).filter(([key, ms]) => exist.has(key) && ms >= WORTH_LISTING_MS)
  const sorted = all.sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
  writeFileSync(join(root, DURATIONS), `${JSON.stringify(Object.fromEntries(sorted), undefined, 2)}\n`)
}

/** Returns the name of an entry, for a person and in the list of durations. */
export function keyOf({ file, form }: Pick<Entry, 'file' | 'form'>): string {
  return form === 'usual' ? file : `${file} (other form)`
}

function testFiles(root: string): string[] {
  const found = [...new Bun.Glob('{src,test,bench,scripts}/**/*.test.{ts,tsx}').scanSync({ cwd: root })]
  return found.filter((file) => !file.includes('node_modules'))
}

function durations(root: string): { readonly [key: string]: number } {
  try {
    return JSON.parse(readFileSync(join(root, DURATIONS), 'utf8'))
  } catch {
    return {}
  }
}
