/** Gathers the rows of all owners: the top of the file, the sections, each provider kind, each channel. */

import { type Row, type Rows, rowOf } from '../kit/settings.ts'
import { memoryRows } from '../memory/settings.ts'
import { providerKinds } from '../providers/list.ts'
import type { ProviderKind } from '../providers/provider-kind.ts'
import { receiptRows } from '../receipts/settings.ts'
import { limitRows } from '../runtime/settings.ts'
import { securityRows } from '../security/settings.ts'
import { toolRows } from '../tools/settings.ts'
import { changeRows } from '../workspace/changes/set/settings.ts'
import { logRows, topRows, visionRows } from './top-settings.ts'

/** In the order of the docs; providers and channels come between `first` and `last`. */
const first = { security: securityRows, limits: limitRows } as const
const last = { vision: visionRows, tools: toolRows, memory: memoryRows, changes: changeRows, receipts: receiptRows, log: logRows } as const
export const sections = { ...first, ...last } as const satisfies { readonly [section: string]: Rows }

/** The rows of [channels.NAME]. The configuration knows no channel itself: the caller that loads it passes the existing ones. */
export type ChannelRows = { readonly name: string; readonly settings: Rows }

/** `key` is dotted, as in TOML; `*` stands for the name of a provider. */
export type Setting = Row & {
  readonly key: string
  /** For a provider's key: the kinds that have it, each with its own default. */
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

/** Kinds whose key has the same type and meaning share one setting. */
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

/**
 * Returns the row of a key. For a provider's key, returns the row of its kind; if the kind is unknown or lacks the key, the first kind that
 * has it decides.
 */
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

/** Returns the last part of a dotted key. */
export function leafOf(key: string): string {
  return key.slice(key.lastIndexOf('.') + 1)
}

/** Returns the section of a key; empty for a key at the top. */
export function sectionOf(key: string): string {
  return key.includes('.') ? key.slice(0, key.lastIndexOf('.')) : ''
}

/**
 * Returns `BRAIDCLAW_LIMITS_MAX_TOOL_ROUNDS`, for example. Keys of providers have no variable, because a provider's name may contain any
 * character.
 */
export function variableOf({ key }: Setting): string | undefined {
  return key.includes('*') ? undefined : `BRAIDCLAW_${key.replaceAll('.', '_').toUpperCase()}`
}

/** Returns every variable that sets this key. */
export function variablesOfSetting(setting: Setting): readonly string[] {
  return [setting.env, variableOf(setting)].filter((name) => name !== undefined)
}
