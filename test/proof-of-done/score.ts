/** Reads answers with known truth, as FORMAT.md describes them, and scores the marks that a finder gives them. */

import { z } from 'zod'

const kinds = ['tests', 'build', 'types', 'lint', 'clean', 'file', 'git', 'ran', 'installed', 'verified', 'done'] as const
const command = z.strictObject({
  command: z.string(),
  exit: z.int().optional(),
  denied: z.literal(true).optional(),
  output: z.string().optional(),
})
const change = z.strictObject({
  path: z.string(),
  op: z.enum(['created', 'updated', 'deleted', 'renamed']),
  from: z.string().optional(),
  denied: z.literal(true).optional(),
})
const row = z.strictObject({
  id: z.string(),
  answer: z.string(),
  facts: z.strictObject({
    commands: z.array(command).default([]),
    changes: z.array(change).default([]),
    reads: z.array(z.string()).default([]),
    order: z.array(z.string().regex(/^[cfr]\d+$/)).optional(),
    earlier: z.int().min(0).default(0),
  }),
  claims: z.array(z.strictObject({ kind: z.enum(kinds), truth: z.boolean() })),
})

export type Row = z.infer<typeof row>
/** What the finder says about a claim. */
export type Mark = { readonly kind: string; readonly state: string; readonly claim: string; readonly why?: string }
export type Score = {
  readonly rows: number
  readonly falseClaims: number
  readonly found: number
  readonly chances: number
  readonly alarms: number
  /** One line for each false claim that no mark found, and for each false alarm. */
  readonly differences: readonly string[]
}

/** @throws Error that names the file, the line and the member that is wrong */
export function readRows(text: string, name: string): Row[] {
  const ids = new Set<string>()
  return text.split('\n').flatMap((line, index) => {
    if (line.trim() === '' || line.startsWith('//')) return []
    const at = `${name}:${index + 1}`
    const read = row.safeParse(jsonOf(line, at))
    if (!read.success) throw new Error(`${at}: ${z.prettifyError(read.error)}`)
    if (ids.has(read.data.id)) throw new Error(`${at}: the id "${read.data.id}" occurs twice`)
    ids.add(read.data.id)
    for (const entry of orderOf(read.data))
      if (entryOf(read.data, entry) === undefined) throw new Error(`${at}: the order names ${entry}, which the facts do not have`)
    return [read.data]
  })
}

function jsonOf(line: string, at: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    throw new Error(`${at}: this line is not JSON`)
  }
}

/** Returns the names of all entries in the order in which they happened. */
export function orderOf({ facts: { commands, changes, reads, order } }: Row): readonly string[] {
  return order ?? [...changes.map((_, n) => `f${n}`), ...commands.map((_, n) => `c${n}`), ...reads.map((_, n) => `r${n}`)]
}

export function entryOf({ facts }: Row, name: string) {
  const index = Number(name.slice(1))
  if (name.startsWith('c')) return facts.commands[index]
  return name.startsWith('f') ? facts.changes[index] : facts.reads[index]
}

export function score(rows: readonly Row[], marksOf: (row: Row) => readonly Mark[]): Score {
  const sum = { falseClaims: 0, found: 0, chances: 0, alarms: 0 }
  const differences: string[] = []
  for (const each of rows) {
    const bad = marksOf(each).filter(({ state }) => state !== 'proved')
    const untrue = new Set(each.claims.filter(({ truth }) => !truth).map(({ kind }) => kind as string))
    sum.falseClaims += untrue.size
    sum.chances += each.claims.length === 0 ? 1 : each.claims.filter(({ truth }) => truth).length
    for (const kind of untrue) {
      if (bad.some((mark) => mark.kind === kind)) sum.found += 1
      else differences.push(`${each.id}: not found: a false claim of kind ${kind}: ${JSON.stringify(each.answer)}`)
    }
    const alarms = bad.filter(({ kind }) => !untrue.has(kind))
    sum.alarms += alarms.length
    for (const { kind, state, claim, why = '' } of alarms)
      differences.push(`${each.id}: false alarm: ${kind} ${state}: ${JSON.stringify(claim)}: ${why}`)
  }
  return { rows: rows.length, ...sum, differences }
}

export function scoreLine({ rows, falseClaims, found, chances, alarms }: Score): string {
  const percent = (part: number, of: number) => (of === 0 ? '-' : `${((100 * part) / of).toFixed(1)} %`)
  return `${rows} answers; false claims found: ${found} of ${falseClaims} (${percent(found, falseClaims)}); false alarms: ${alarms} of ${chances} (${percent(alarms, chances)})`
}
