/** Prints the resolved configuration as TOML or JSON. It contains no secret: keys appear only as the names of environment variables. */

import { isObject } from '../../kit/json.ts'
import { camel, type Row } from '../../kit/settings.ts'
import { quoteText } from '../../security/command/syntax/quote.ts'
import type { Config, Origins } from '../config.ts'
import { programNames } from '../layers/entries.ts'
import {
  type ChannelRows,
  leafOf,
  providerPrefix,
  providerSetting,
  rowsOfKind,
  type Setting,
  sectionOf,
  serverPrefix,
  tableOf,
  variablesOfSetting,
} from '../table.ts'
import { quote, tomlValue } from '../text/toml.ts'

export type ShowOptions = { readonly origin: boolean; readonly json: boolean; readonly channels: readonly ChannelRows[] }

/** Returns valid TOML (or JSON with the TOML names), ending in a line feed. With `origin`, each value names the source that won. */
export function showConfig(config: Config, origins: Origins, { origin, json, channels }: ShowOptions): string {
  const shown = sectionsOf(config, tableOf(channels).settings)
  if (json) return `${JSON.stringify(origin ? { config: nested(shown), origins } : nested(shown), null, 2)}\n`
  const sections = shown.map(({ header, rows }) => {
    const lines = rows.map(({ key, setting, value }) => line(leafOf(key), setting, value, origin ? originOf(origins, key) : ''))
    return (header === '' ? lines : [`[${header}]`, ...lines]).join('\n')
  })
  return `${sections.join('\n\n')}\n`
}

type VariableOptions = Pick<ShowOptions, 'channels'> & { readonly home: string; readonly redact: (text: string) => string }

/**
 * Returns NAME=value lines that a shell reads back exactly: the names of the second specification, then one variable for each setting. Keys
 * of providers have no variable.
 */
export function showVariables(config: Config, { home, channels, redact }: VariableOptions): string {
  const { defaultModel, defaultAgent = 'default', tools } = config
  const seed = { HOME: home, MODEL: defaultModel, DEFAULT_AGENT: defaultAgent, TOOL_BACKEND: tools.backend }
  const named = Object.entries(seed).map(([name, value]) => [`SHELLCLAW_${name}`, value] as const)
  const rows = tableOf(channels).settings.flatMap((setting) => {
    const [name, value] = [variablesOfSetting(setting).at(-1), valueAt(config, setting.key)]
    return name === undefined || value === undefined ? [] : [[name, typeof value === 'object' ? JSON.stringify(value) : value] as const]
  })
  return [...named, ...rows].map(([name, value]) => `${name}=${quoteText(redact(String(value)))}\n`).join('')
}

type SettingRow = { readonly key: string; readonly setting: Row; readonly value: unknown }
type Section = { readonly header: string; readonly rows: readonly SettingRow[] }

function sectionsOf(config: Config, settings: readonly Setting[]): readonly Section[] {
  const rows = settings.flatMap((setting) => rowsFor(setting, config)).map((row) => ({ ...row, value: valueAt(config, row.key) }))
  const shown = rows.filter(({ key, value }) => value !== undefined || !key.startsWith(providerPrefix))
  const headers = [...new Set(shown.map(({ key }) => sectionOf(key)))]
  return headers.map((header) => ({ header, rows: shown.filter(({ key }) => sectionOf(key) === header) }))
}

/** Lists the rows of each provider's kind at the place of the row `kind`. */
function rowsFor(setting: Setting, { providers, mcp }: Config): readonly Omit<SettingRow, 'value'>[] {
  if (setting.key.startsWith(serverPrefix)) return Object.keys(mcp.servers).map((id) => ({ key: `${serverPrefix}${id}`, setting }))
  if (!setting.key.startsWith(providerPrefix)) return [{ key: setting.key, setting }]
  if (leafOf(setting.key) !== 'kind') return []
  return Object.values(providers.models).flatMap(({ name, kind }) =>
    ['kind', ...Object.keys(rowsOfKind(kind) ?? {})].flatMap((leaf) => {
      const key = `${providerPrefix}${name}.${leaf}`
      const row = providerSetting(key, kind)
      return row ? [{ key, setting: row }] : []
    }),
  )
}

function line(name: string, setting: Row, value: unknown, origin: string): string {
  return value === undefined
    ? `# ${name} is not set: ${setting.absent ?? setting.computed ?? 'off'}`
    : `${name} = ${tomlValue(value)}${origin}`
}

function originOf(origins: Origins, key: string): string {
  const origin = origins[key]
  if (origin === undefined) return ''
  return `  # ${origin.source}: ${quote(origin.where).slice(1, -1)}${origin.line === undefined ? '' : `:${origin.line}`}`
}

/** Returns the configuration program that a setting comes from. */
export function programIn(origins: Origins): string | undefined {
  return Object.values(origins).find(({ where }) => programNames.some((name) => where.endsWith(`/${name}`)))?.where
}

/** Returns the value of a dotted TOML key in the Config. */
export function valueAt(config: Config, key: string): unknown {
  const path = key.split('.')
  return path.reduce<unknown>((at, part, index) => {
    const name = (path[0] === 'providers' || path[0] === 'mcp') && index === 2 ? part : camel(part)
    return isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined
  }, config)
}

function nested(sections: readonly Section[]): unknown {
  const rows = sections.flatMap((section) => section.rows)
  return tree(rows.filter(({ value }) => value !== undefined).map(({ key, value }) => ({ path: key.split('.'), value })))
}

type Leaf = { readonly path: readonly string[]; readonly value: unknown }

function tree(leaves: readonly Leaf[]): unknown {
  const names = [...new Set(leaves.map(({ path }) => path[0] ?? ''))]
  const members = names.map((name) => {
    const mine = leaves.filter(({ path }) => path[0] === name).map(({ path, value }) => ({ path: path.slice(1), value }))
    const [only] = mine
    return [name, only?.path.length === 0 ? only.value : tree(mine)]
  })
  return Object.fromEntries(members)
}
