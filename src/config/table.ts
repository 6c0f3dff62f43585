/** The rows of all owners in one place: what stands at the top, the sections, each kind of provider, each channel. */

import { type Row, type Rows, rowOf } from '../kit/settings.ts'
import { memoryRows } from '../memory/settings.ts'
import { providerKinds } from '../providers/list.ts'
import type { ProviderKind } from '../providers/provider-kind.ts'
import { receiptRows } from '../receipts/settings.ts'
import { limitRows } from '../runtime/settings.ts'
import { securityRows } from '../security/settings.ts'
import { toolRows } from '../tools/settings.ts'
import { logRows, topRows } from './top-settings.ts'

/** In the order of the docs, providers and channels between the two. */
const first = { security: securityRows, limits: limitRows } as const
const last = { tools: toolRows, memory: memoryRows, receipts: receiptRows, log: logRows } as const
export const sections = { ...first, ...last } as const satisfies { readonly [section: string]: Rows }

/** The rows of [channels.NAME]. Configuration knows no channel: whoever loads it says which there are. */
export type ChannelRows = { readonly name: string; readonly settings: Rows }

/** `key` is dotted, as in TOML; `*` stands for the name of a provider. */
export type Setting = Row & {
  readonly key: string
  /** Of a provider's key: the kinds that have it, each with its own default. */
  readonly kinds?: readonly { readonly kind: string; readonly row: Row }[]
}

export type Table = {
  /** Every key once, in the order of the docs. */
  readonly settings: readonly Setting[]
  readonly byKey: ReadonlyMap<string, Setting>
}

export const providerPrefix = 'providers.models.'

export const kinds: readonly ProviderKind[] = providerKinds

const kindRow = {
  type: 'choice',
  values: kinds.map(({ kind }) => kind),
  required: true,
  about: 'What the provider is.',
} as const satisfies Row

export function tableOf(channels: readonly ChannelRows[]): Table {
  const settings = [
    ...settingsIn('', topRows),
    ...Object.entries(first).flatMap(([name, rows]) => settingsIn(`${name}.`, rows)),
    ...providerSettings(),
    ...channels.flatMap(({ name, settings: rows }) => settingsIn(`channels.${name}.`, rows)),
    ...Object.entries(last).flatMap(([name, rows]) => settingsIn(`${name}.`, rows)),
  ]
  return { settings, byKey: new Map(settings.map((setting) => [setting.key, setting])) }
}

function settingsIn(prefix: string, rows: Rows): readonly Setting[] {
  return Object.entries(rows).map(([key, row]) => ({ ...row, key: prefix + key }))
}

/** Kinds that mean the same by a key share its place. */
function providerSettings(): readonly Setting[] {
  const groups = new Map<string, { readonly key: string; readonly kinds: { readonly kind: string; readonly row: Row }[] }>()
  for (const { kind, settings } of kinds)
    for (const [leaf, row] of Object.entries(settings)) {
      const same = `${leaf} ${row.type} ${row.about}`
      const group = groups.get(same) ?? { key: `${providerPrefix}*.${leaf}`, kinds: [] }
      groups.set(same, group)
      group.kinds.push({ kind, row })
    }
  return [{ ...kindRow, key: `${providerPrefix}*.kind` }, ...[...groups.values()].flatMap(shared)]
}

function shared(group: { readonly key: string; readonly kinds: readonly { readonly kind: string; readonly row: Row }[] }): Setting[] {
  return group.kinds.slice(0, 1).map(({ row }) => ({ ...row, ...group }))
}

/** The row of a key; of a provider's key the row of its kind, or, where the kind is not known or has no such key, that of the first that has. */
export function settingOf({ byKey }: Table, key: string, kind?: string): Setting | undefined {
  return key.startsWith(providerPrefix) ? providerSetting(key, kind) : byKey.get(key)
}

export function providerSetting(key: string, kind: string | undefined): Setting | undefined {
  const [, leaf = ''] = /^providers\.models\.[^.]+\.([^.]+)$/.exec(key) ?? []
  const row = leaf === 'kind' ? kindRow : rowOf(rowsOfKind(kind) ?? {}, leaf)
  const found = row ?? kinds.map(({ settings }) => rowOf(settings, leaf)).find((each) => each !== undefined)
  return found && { ...found, key: `${providerPrefix}*.${leaf}` }
}

export function rowsOfKind(kind: string | undefined): Rows | undefined {
  return kinds.find((each) => each.kind === kind)?.settings
}

/** `providers.models.local.kind` → `providers.models.*.kind`. */
export function patternOf(key: string): string {
  return key.replace(/^providers\.models\.[^.]+/, 'providers.models.*')
}

/** The last part of a dotted key. */
export function leafOf(key: string): string {
  return key.slice(key.lastIndexOf('.') + 1)
}

/** The section that a key stands in; empty at the top. */
export function sectionOf(key: string): string {
  return key.includes('.') ? key.slice(0, key.lastIndexOf('.')) : ''
}

/** `BRAIDCLAW_LIMITS_MAX_TOOL_ROUNDS`; providers' own keys have none, their names may hold anything. */
export function variableOf({ key }: Setting): string | undefined {
  return key.includes('*') ? undefined : `BRAIDCLAW_${key.replaceAll('.', '_').toUpperCase()}`
}

/** Every variable that sets this key. */
export function variablesOfSetting(setting: Setting): readonly string[] {
  return [setting.env, variableOf(setting)].filter((name) => name !== undefined)
}
