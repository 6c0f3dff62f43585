/** The environment as a layer: BRAIDCLAW_<SECTION>_<KEY>, and a few short names. */

import { nearest } from '../../kit/did-you-mean.ts'
import type { Origin } from '../config.ts'
import { type Setting, settingOf, type Table, variablesOfSetting } from '../table.ts'
import type { ExpandContext } from '../text/expand.ts'
import { draftLayer, type Here, type Layer, put } from './entries.ts'

/** What variables hold, each with where it is said. */
export type Variables = ReadonlyMap<string, { readonly text: string; readonly origin: Origin }>

/** Another spelling of a variable, used where that one is not set. */
const aliases: { readonly [name: string]: string } = {
  SHELLCLAW_MODEL: 'BRAIDCLAW_MODEL',
  SHELLCLAW_DEFAULT_AGENT: 'BRAIDCLAW_DEFAULT_AGENT',
  SHELLCLAW_TOOL_BACKEND: 'BRAIDCLAW_TOOL_BACKEND',
  SHELLCLAW_SKILLS_DIR: 'BRAIDCLAW_TOOLS_DIR',
}

/** Whoever tests a script with these means every turn in it, whatever model its lines ask for. */
const backends = ['BRAIDCLAW_LLM_BACKEND', 'SHELLCLAW_LLM_BACKEND']

/** Not settings, but read elsewhere. */
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

/** Who answers instead of whoever would: stronger than any flag. */
export function backendLayer(given: Variables, where: Here): Layer {
  const draft = draftLayer()
  const setting = settingOf(where.table, 'default_provider')
  const said = backends.map((name) => given.get(name)).find((found) => found !== undefined)
  if (said && setting) put(draft, { setting, raw: said.text, where, origin: said.origin })
  return draft
}

/** Every variable that means something here. */
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

/** Text as the row wants it; what does not fit stays text, so that the check can say what was found. Lists: `a,b` or a JSON list. */
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
      // Not JSON: then the commas decide, and the check names the odd item.
    }
  }
  return text.split(',').map((item) => item.trim())
}

/** Variables that look like settings of ours and are none: most likely a typing error. */
function strangers(variables: Variables, table: Table): readonly string[] {
  const known = knownVariables(table)
  const begins = [...new Set(table.settings.map(({ key }) => `BRAIDCLAW_${key.split(/[._]/)[0]?.toUpperCase()}_`))]
  const alike = [...variables.keys()].filter((name) => begins.some((begin) => name.startsWith(begin)))
  return alike.filter((name) => !known.includes(name)).map((name) => noSetting(name, known))
}

/** A sentence about a name nobody reads. */
export function noSetting(name: string, known: readonly string[]): string {
  const near = nearest(name, known)
  return `${name} is not a setting and was ignored${near === undefined ? '' : `; did you mean ${near}?`}`
}
