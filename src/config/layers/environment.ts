/** Reads variables as a layer, of the environment and of the env files: BRAIDCLAW_<SECTION>_<KEY>, and a few short names. */

import { join } from 'node:path'
import { parseJson } from '../../kit/json.ts'
import { nearest } from '../../kit/text.ts'
import type { Origin } from '../config.ts'
import { homePaths } from '../paths.ts'
import { type Setting, settingOf, type Table, variablesOfSetting } from '../table.ts'
import { readAssignments } from '../text/assignments.ts'
import type { ExpandContext } from '../text/check.ts'
import type { FileRead } from '../text/read-toml-file.ts'
import { draftLayer, type Here, type Layer, type LayerContext, put } from './entries.ts'

/** The text of each variable, with its origin. */
type Variables = ReadonlyMap<string, { readonly text: string; readonly origin: Origin }>

/** Other spellings of variables, used when the variable itself is not set. */
const aliases: { readonly [name: string]: string } = {
  SHELLCLAW_MODEL: 'BRAIDCLAW_MODEL',
  SHELLCLAW_DEFAULT_AGENT: 'BRAIDCLAW_DEFAULT_AGENT',
  SHELLCLAW_TOOL_BACKEND: 'BRAIDCLAW_TOOL_BACKEND',
  SHELLCLAW_SKILLS_DIR: 'BRAIDCLAW_TOOLS_DIR',
}

/** These variables override the provider of every turn, whatever model is requested; tests of scripts use them. */
const backends = ['BRAIDCLAW_LLM_BACKEND', 'SHELLCLAW_LLM_BACKEND']

/** Read elsewhere; these are not settings. */
const others = ['BRAIDCLAW_HOME', 'BRAIDCLAW_LOG', 'BRAIDCLAW_MOCK_FIXTURE']

/** An empty variable counts as not set: `X= braidclaw` must not empty a list of forbidden paths. */
export function variablesOf(env: ExpandContext['env'], table: Table): Variables {
  const short = new Set(table.settings.map((setting) => setting.env))
  const ours = Object.entries(env).filter(([name, text]) => text && (short.has(name) || /^(BRAID|SHELL)CLAW_./.test(name)))
  return new Map(ours.map(([name, text = '']) => [name, { text, origin: { source: 'environment', where: name } }]))
}

export function environmentLayer(read: Variables, where: Here): Layer {
  const draft = draftLayer()
  const variables = withAliases(read)
  if (![...variables.keys()].some((name) => !others.includes(name))) return draft
  for (const setting of where.table.settings) {
    const [variable, other] = variablesOfSetting(setting).filter((name) => variables.has(name))
    const entry = variable === undefined ? undefined : variables.get(variable)
    if (variable === undefined || entry === undefined) continue
    if (other !== undefined && variables.get(other)?.text !== entry.text)
      draft.notices.push(`${other} is set too and not used: ${variable} decides`)
    put(draft, { setting, raw: fromText(setting, entry.text), where, origin: entry.origin })
  }
  draft.notices.push(...strangers(variables, where.table))
  return draft
}

/** Returns a layer with the provider that overrides any other choice, flags included. */
export function backendLayer(read: Variables, where: Here): Layer {
  const draft = draftLayer()
  const setting = settingOf(where.table, 'default_provider')
  const entry = backends.map((name) => read.get(name)).find((found) => found !== undefined)
  if (entry && setting) put(draft, { setting, raw: entry.text, where, origin: entry.origin })
  return draft
}

/** Returns every variable that sets something here. */
function knownVariables({ settings }: Table): readonly string[] {
  return [...settings.flatMap(variablesOfSetting), ...Object.keys(aliases), ...backends]
}

function withAliases(read: Variables): Variables {
  const variables = new Map(read)
  for (const [alias, name] of Object.entries(aliases)) {
    const entry = read.get(alias)
    if (entry && !read.has(name)) variables.set(name, entry)
  }
  return variables
}

/**
 * Converts text to the type of the row. Text that does not fit stays text, so that the check can report it. Lists: `a,b` or a JSON list.
 */
export function fromText(setting: Setting, text: string): unknown {
  switch (setting.type) {
    case 'boolean':
      return text === '1' || text === 'true' ? true : text === '0' || text === 'false' ? false : text
    case 'whole':
    case 'number':
      return /^[+-]?\d[\d_]*(\.\d+)?$/.test(text) ? Number(text.replaceAll('_', '')) : text
    case 'paths':
    case 'words':
      return listFrom(text)
    case 'ports':
      return listFrom(text).map((item) => (typeof item === 'string' && /^\d+$/.test(item) ? Number(item) : item))
    default:
      return text
  }
}

function listFrom(text: string): readonly unknown[] {
  const parsed = text.trimStart().startsWith('[') ? parseJson(text) : undefined
  if (Array.isArray(parsed)) return parsed
  // What is not JSON is split at the commas, and the check names the invalid item.
  return text.split(',').map((item) => item.trim())
}

/** Reports variables that look like our settings but are not: most likely typing errors. */
function strangers(variables: Variables, table: Table): readonly string[] {
  const known = knownVariables(table)
  const begins = [...new Set(table.settings.map(({ key }) => `BRAIDCLAW_${key.split(/[._]/)[0]?.toUpperCase()}_`))]
  const alike = [...variables.keys()].filter((name) => begins.some((begin) => name.startsWith(begin)))
  return alike.filter((name) => !known.includes(name)).map((name) => noSetting(name, known))
}

/** Returns a notice about an unknown name. */
function noSetting(name: string, known: readonly string[]): string {
  const near = nearest(name, known)
  return `${name} is not a setting and was ignored${near === undefined ? '' : `; did you mean ${near}?`}`
}

type EnvFileInput = { readonly around: LayerContext; readonly readFile: (path: string) => FileRead }

/** `backend` sets the provider that overrides any other choice. */
export type EnvFileLayers = { readonly settings: Layer; readonly backend: Layer }

/**
 * Reads `<home>/config/braidclaw.env` (or shellclaw.env), which sets the environment's variables with lower precedence. Executes nothing in
 * the files; reports invalid lines and unknown names.
 */
export function envFileLayers({ around, readFile }: EnvFileInput): EnvFileLayers {
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
type Text = { readonly file: string; readonly text: string; readonly around: LayerContext }

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

type FileVariable = { readonly name: string; readonly value: string; readonly home: string; readonly known: readonly string[] }

function remark({ name, value, home, known }: FileVariable): string | undefined {
  if (/^(BRAID|SHELL)CLAW_HOME$/.test(name))
    return value === home ? undefined : `${name} cannot move the folder that this file lies in; set it in the environment`
  if (known.includes(name)) return undefined
  if (/^(BRAID|SHELL)CLAW_/.test(name)) return noSetting(name, known)
  return `${name} is not read from this file; only settings of ours are, and keys belong into the environment`
}
