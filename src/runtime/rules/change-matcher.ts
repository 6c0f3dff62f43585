/** Parses which changes to the workspace a rule is about, and finds them in a change set and in the call of a file tool. */

import { isObject } from '../../kit/json.ts'
import { didYouMean, quote } from '../../kit/text.ts'
import type { Change } from '../changes.ts'
import type { Proposal } from '../event.ts'
import { type Condition, type Places, parseCondition } from './condition.ts'
import type { ProblemReport } from './problem.ts'

/** One change as a rule sees it; `path` is relative to the workspace. */
type ChangeFacts = { readonly path: string; readonly kind: string; readonly change: string }

export type ChangeMatcher = ReturnType<typeof matcherOf>

const fields = ['path', 'kind', 'change'] as const
type Field = (typeof fields)[number]

const choices: { readonly [field in Field]?: readonly string[] } = {
  kind: ['file', 'folder', 'link'],
  change: ['created', 'changed', 'deleted'],
}

/** The operations that each file tool may do on the file that it writes. */
const fileTools: { readonly [tool: string]: readonly string[] } = {
  file_write: ['created', 'changed'],
  file_edit: ['changed'],
  file_delete: ['deleted'],
}

/** Every field must hold of the same change. @returns undefined after it reported the problem */
export function parseChanges(given: unknown, report: ProblemReport, places: Places): ChangeMatcher | undefined {
  if (!isObject(given) || Object.keys(given).length === 0)
    return report.say(`must say which changes, such as {"path": {"path": "migrations/**"}}; got ${quote(given)}`)
  const parts = Object.entries(given).map(([field, source]) => partOf(field, source, report.at(field), places))
  const known = parts.filter((part) => part !== undefined)
  return known.length === parts.length ? matcherOf(known, places) : undefined
}

type FieldCondition = { readonly field: Field; readonly condition: Condition }

function partOf(name: string, source: unknown, report: ProblemReport, places: Places): FieldCondition | undefined {
  const field = fields.find((one) => one === name)
  if (field === undefined) return report.say(`no such field of a change; allowed: ${fields.join(', ')}${didYouMean(name, fields)}`)
  const condition = parseCondition(source, report, places)
  const allowed = choices[field]
  if (!condition || allowed === undefined || allowed.some((one) => condition.holds(one))) return condition && { field, condition }
  return report.say(`never holds: ${field} is one of ${allowed.join(', ')}${typeof source === 'string' ? didYouMean(source, allowed) : ''}`)
}

function matcherOf(parts: readonly FieldCondition[], { workspace }: Places) {
  const holds = (seen: ChangeFacts) => parts.every(({ field, condition }) => condition.holds(seen[field]))
  const sample = parts.find(({ field }) => field === 'path')?.condition.sample
  // The shortest text of a pattern for everything in a folder is the folder.
  const paths = typeof sample === 'string' ? [sample, `${sample.replace(/\/$/, '')}/a`] : ['sample']
  return {
    matches: ({ path, before, after }: Change) => holds({ path, kind: (after ?? before)?.kind ?? 'file', change: changeOf(before, after) }),
    /** Tells whether the call of a file tool makes such a change. The changes of a command are known only when it has ended. */
    matchesCall: ({ call, judgement }: Proposal): boolean => {
      const changes = Object.hasOwn(fileTools, call.name) ? (fileTools[call.name] ?? []) : []
      const written = judgement.writes.map((one) => (one.startsWith(`${workspace}/`) ? one.slice(workspace.length + 1) : one))
      return written.some((path) => changes.some((change) => holds({ path, kind: 'file', change })))
    },
    /** The calls of file tools that probably match. */
    samples: Object.keys(fileTools).map((name) => ({
      name,
      input: {},
      writes: paths.map((path) => (path.startsWith('/') ? path : `${workspace}/${path}`)),
    })),
  }
}

function changeOf(before: Change['before'], after: Change['after']): string {
  return before === undefined ? 'created' : after === undefined ? 'deleted' : 'changed'
}
