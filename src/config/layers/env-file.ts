/** Reads `<home>/config/braidclaw.env` (or shellclaw.env), which sets the environment's variables with lower precedence. */

import { join } from 'node:path'
import type { Origin } from '../config.ts'
import { homePaths } from '../paths.ts'
import { readAssignments } from '../text/assignments.ts'
import type { FileRead } from '../text/read-toml-file.ts'
import { type Around, draftLayer, type Layer } from './entries.ts'
import { backendLayer, environmentLayer, knownVariables, noSetting } from './environment.ts'

type Given = { readonly around: Around; readonly readFile: (path: string) => FileRead }

/** `backend` sets the provider that overrides any other choice. */
export type EnvFileLayers = { readonly settings: Layer; readonly backend: Layer }

/** Executes nothing in the files. Reports invalid lines and unknown names. */
export function envFileLayers({ around, readFile }: Given): EnvFileLayers {
  const draft = draftLayer()
  const variables: Draft = new Map()
  for (const file of homePaths(around.home).envFiles) {
    const read = readFile(file)
    if (read.state === 'unusable') draft.problems.push({ file, line: read.line, key: '', message: `this file ${read.why}` })
    if (read.state !== 'text') continue
    if (read.worldWritable) draft.notices.push(`${file} can be changed by every user of this machine; run: chmod o-w ${file}`)
    draft.notices.push(...take(variables, { file, text: read.text, around }))
  }
  const where = { ...around, base: join(around.home, 'config'), typed: false }
  const { entries, problems, notices } = environmentLayer(variables, where)
  const settings = { entries, problems: [...draft.problems, ...problems], notices: [...draft.notices, ...notices] }
  return { settings, backend: backendLayer(variables, where) }
}

type Draft = Map<string, { readonly text: string; readonly origin: Origin }>
type Text = { readonly file: string; readonly text: string; readonly around: Around }

/** @returns the notices to show. */
function take(variables: Draft, { file, text, around: { home, table } }: Text): readonly string[] {
  const { assignments, odd } = readAssignments(text)
  const known = knownVariables(table)
  const notices = odd.map(({ line, why }) => ({ line, what: `this line ${why}` }))
  for (const { name, value, line } of assignments) {
    const what = remark({ name, value, home, known })
    if (what !== undefined) notices.push({ line, what })
    else if (value !== '') variables.set(name, { text: value, origin: { source: 'environment', where: file, line } })
  }
  return notices.toSorted((a, b) => a.line - b.line).map(({ line, what }) => `${file}:${line}: ${what}`)
}

type Named = { readonly name: string; readonly value: string; readonly home: string; readonly known: readonly string[] }

function remark({ name, value, home, known }: Named): string | undefined {
  if (/^(BRAID|SHELL)CLAW_HOME$/.test(name))
    return value === home ? undefined : `${name} cannot move the folder that this file lies in; set it in the environment`
  if (known.includes(name)) return undefined
  if (/^(BRAID|SHELL)CLAW_/.test(name)) return noSetting(name, known)
  return `${name} is not read from this file; only settings of ours are, and keys belong into the environment`
}
