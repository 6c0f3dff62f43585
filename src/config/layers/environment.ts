/** Reads the environment as a layer: BRAIDCLAW_<SECTION>_<KEY>, and a few short names. */

import { nearest } from '../../kit/text.ts'
import type { Origin } from '../config.ts'
import { type Setting, settingOf, type Table, variablesOfSetting } from '../table.ts'
import type { ExpandContext } from '../text/expand.ts'
import { draftLayer, type Here, type Layer, put } from './entries.ts'

/** The text of each variable, with its origin. */
export type Variables = ReadonlyMap<string, { readonly text: string; readonly origin: Origin }>

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

export function environmentLayer(given: Variables, where: Here): Layer {
  const draft = draftLayer()
  const variables = withAliases(given)
  if (![...variables.keys()].some((name) => !others.includes(name))) return draft
  for (const setting of where.table.settings) {
    const [variable, other] = variablesOfSetting(setting).filter((name) => variables.has(name))
    const said = variable === undefined ? undefined : variables.get(variable)
    if (variable === undefined || said === undefined) continue
    if (other !== undefined && variables.get(other)?.text !== said.text)
      draft.notices.push(`${other} is set too and not used: ${variable} decides`)
    put(draft, { setting, raw: fromText(setting, said.text), where, origin: said.origin })
  }
  draft.notices.push(...strangers(variables, where.table))
  return draft
}

/** Returns a layer with the provider that overrides any other choice, flags included. */
export function backendLayer(given: Variables, where: Here): Layer {
  const draft = draftLayer()
  const setting = settingOf(where.table, 'default_provider')
  const said = backends.map((name) => given.get(name)).find((found) => found !== undefined)
  if (said && setting) put(draft, { setting, raw: said.text, where, origin: said.origin })
  return draft
}

/** Returns every variable that sets something here. */
export function knownVariables({ settings }: Table): readonly string[] {
  return [...settings.flatMap(variablesOfSetting), ...Object.keys(aliases), ...backends]
}

function withAliases(given: Variables): Variables {
  const variables = new Map(given)
  for (const [alias, name] of Object.entries(aliases)) {
    const said = given.get(alias)
    if (said && !given.has(name)) variables.set(name, said)
  }
  return variables
}

/**
 * Converts text to the type of the row. Text that does not fit stays text, so that the check can report it. Lists: `a,b` or a JSON list.
 */
function fromText(setting: Setting, text: string): unknown {
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
  if (text.trimStart().startsWith('[')) {
    try {
      const parsed: unknown = JSON.parse(text)
      if (Array.isArray(parsed)) return parsed
    } catch {
      // Not JSON: split at the commas, and let the check name the invalid item.
    }
  }
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
export function noSetting(name: string, known: readonly string[]): string {
  const near = nearest(name, known)
  return `${name} is not a setting and was ignored${near === undefined ? '' : `; did you mean ${near}?`}`
}
