/** Summarises the results of the mutants: counts and score per file, and the survivors by location, as JSON and as tables. */

import type { Fate } from './hunt.ts'
import type { Mutant } from './instrument.ts'

export type Tally = { readonly [fate in Fate]: number }
export type Row = Tally & { readonly name: string /** The percentage of all mutants that a test detected. */; readonly score: number }
export type Survivor = Omit<Mutant, 'id'> & { readonly fate: 'survived' | 'no coverage' }
export type Report = { readonly total: Row; readonly files: readonly Row[]; readonly survivors: readonly Survivor[] }

export function reportOf(mutants: readonly Mutant[], fates: ReadonlyMap<string, Fate>): Report {
  const fateOf = ({ id }: Mutant): Fate => fates.get(id) ?? 'no coverage'
  const names = [...new Set(mutants.map(({ file }) => file))].sort()
  const row = (name: string, some: readonly Mutant[]): Row => rowOf(name, some.map(fateOf))
  const files = names.map((name) =>
    row(
      name,
      mutants.filter(({ file }) => file === name),
    ),
  )
  const survivors = mutants.flatMap((mutant): Survivor[] => {
    const fate = fateOf(mutant)
    const { id: _, ...rest } = mutant
    return fate === 'survived' || fate === 'no coverage' ? [{ ...rest, fate }] : []
  })
  return { total: row('all', mutants), files, survivors }
}

function rowOf(name: string, fates: readonly Fate[]): Row {
  const count = (fate: Fate): number => fates.filter((one) => one === fate).length
  const tally = { killed: count('killed'), timeout: count('timeout'), survived: count('survived'), 'no coverage': count('no coverage') }
  const score = fates.length === 0 ? 100 : ((tally.killed + tally.timeout) / fates.length) * 100
  return { name, ...tally, score }
}

export function table(rows: readonly Row[]): string {
  const lines = rows.map((row) => {
    const { name, killed, timeout, survived, score } = row
    return `| ${name} | ${killed} | ${timeout} | ${survived} | ${row['no coverage']} | ${score.toFixed(1)} % |`
  })
  return ['| file | killed | timeout | survived | no coverage | score |', '|---|---|---|---|---|---|', ...lines].join('\n')
}

/** Formats one line per survivor: `file:line:column mutator: original → replacement`. */
export function listed(survivors: readonly Survivor[]): string {
  const brief = (text: string): string => text.replace(/\s+/g, ' ').slice(0, 120)
  return survivors
    .map((one) => `${one.file}:${one.line}:${one.column} ${one.mutator}: ${brief(one.original)} → ${brief(one.replacement)}\n`)
    .join('')
}
