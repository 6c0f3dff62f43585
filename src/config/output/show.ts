/** Prints the resolved configuration as TOML or JSON. No secret can be in it: keys are only named by their environment variable. */

import { isObject } from '../../kit/json.ts'
import type { Config, Origins } from '../config.ts'
import { leafOf, type Setting } from '../setting.ts'
import { settings } from '../settings.ts'
import { quote } from '../text/toml-quote.ts'

export type ShowOptions = { readonly origin: boolean; readonly json: boolean }

/** Valid TOML (or JSON with the TOML names), ending in a line feed. With `origin` each value says which source won. */
export function showConfig(config: Config, origins: Origins, { origin, json }: ShowOptions): string {
  if (json) return `${JSON.stringify(origin ? { config: nested(config), origins } : nested(config), null, 2)}\n`
  const sections = sectionsOf(config).map(({ header, rows }) => {
    const lines = rows.map(({ key, setting, value }) => line(setting, value, origin ? originOf(origins, key) : ''))
    return (header === '' ? lines : [`[${header}]`, ...lines]).join('\n')
  })
  return `${sections.join('\n\n')}\n`
}

type Row = { readonly key: string; readonly setting: Setting; readonly value: unknown }
type Section = { readonly header: string; readonly rows: readonly Row[] }

function sectionsOf(config: Config): readonly Section[] {
  const rows = settings.flatMap((setting) => keysOf(setting, config).map((key) => ({ key, setting, value: valueAt(config, key) })))
  const shown = rows.filter(({ key, value }) => value !== undefined || !key.startsWith('providers.'))
  const headers = [...new Set(shown.map(({ key }) => headerOf(key)))]
  return headers.map((header) => ({ header, rows: shown.filter(({ key }) => headerOf(key) === header) }))
}

function keysOf({ key }: Setting, config: Config): readonly string[] {
  return key.includes('*') ? Object.keys(config.providers.models).map((name) => key.replace('*', name)) : [key]
}

function headerOf(key: string): string {
  return key.includes('.') ? key.slice(0, -leafOf(key).length - 1) : ''
}

function line(setting: Setting, value: unknown, origin: string): string {
  const name = leafOf(setting.key)
  return value === undefined ? `# ${name} is not set: ${setting.absent ?? 'off'}` : `${name} = ${toml(value)}${origin}`
}

function originOf(origins: Origins, key: string): string {
  const origin = origins[key]
  if (origin === undefined) return ''
  return `  # ${origin.source}: ${quote(origin.where).slice(1, -1)}${origin.line === undefined ? '' : `:${origin.line}`}`
}

/** A value as TOML; numbers, booleans and quoted text are spelled as in JSON. */
export function toml(value: unknown): string {
  if (typeof value === 'string') return quote(value)
  if (Array.isArray(value)) return `[${value.map(toml).join(', ')}]`
  if (!isObject(value)) return String(value)
  const members = Object.entries(value).map(([key, member]) => `${quote(key)} = ${toml(member)}`)
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`
}

/** The value a dotted TOML key has in the Config; `price_input` and its like live in `prices`. */
export function valueAt(config: Config, key: string): unknown {
  const path = key.replace(/\.price_(\w+)$/, '.prices.$1').split('.')
  return path.reduce<unknown>((at, part, index) => {
    const name = path[0] === 'providers' && index === 2 ? part : camel(part)
    return isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined
  }, config)
}

function camel(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

function nested(config: Config): unknown {
  const rows = sectionsOf(config).flatMap((section) => section.rows)
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
