/** Writes the annotated config file for `init`. */

import { defaultOf, type Row, type Rows } from '../../kit/settings.ts'
import { providerTable } from '../extend.ts'
import type { Proposal } from '../known-providers.ts'
import { workValueOf } from '../layers/defaults.ts'
import { type ChannelRows, sections } from '../table.ts'
import { topRows } from '../top-settings.ts'
import { toml } from './show.ts'

export type Template = {
  readonly channels: readonly ChannelRows[]
  /** The first becomes the default provider. */
  readonly proposals: readonly Proposal[]
  readonly workspace?: string
}

/** Returns a complete, valid file; each commented-out line shows its default and stays valid when it is uncommented. */
export function defaultConfigToml({ channels, proposals, workspace }: Template): string {
  const [first] = proposals
  const { security, limits, ...others } = sections
  const top = linesOf(topRows, {
    workspace_dir: workspace?.replaceAll('$', '$$$$'),
    default_provider: first?.name ?? 'local',
    default_model: first?.model ?? 'mock',
  })
  const providers = [
    ['# Answers without any network; it is no language model.', '[providers.models.local]', 'kind = "mock"', 'model = "mock"'],
    ...(proposals.length === 0 ? [exampleProvider] : proposals.map(providerTable)),
  ]
  const all = [
    ['# BraidClaw. Every key, its meaning and its default: docs/config.md; check this file with: braidclaw config validate', ...top],
    ...Object.entries({ security, limits }).map(section),
    ...providers,
    ...channels.map(({ name, settings }) => section([`channels.${name}`, settings])),
    ...Object.entries(others).map(section),
  ]
  return `${all.map((lines) => lines.join('\n')).join('\n\n')}\n`
}

const exampleProvider = [
  '# A real model, here any server that speaks the chat completions protocol. The key is read from the variable named.',
  '# [providers.models.openai_compatible]',
  '# kind = "openai-compatible"',
  '# base_url = "http://localhost:1234/v1"',
  '# model = "local-model"',
  '# api_key_env = "OPENAI_API_KEY"',
]

function section([name, rows]: readonly [name: string, rows: Rows]): string[] {
  return [`[${name}]`, ...linesOf(rows)]
}

/** Writes every key of a table: keys with a value and keys that a new file sets; the others are commented out. */
function linesOf(rows: Rows, values: { readonly [key: string]: string | undefined } = {}): string[] {
  return Object.entries(rows).flatMap(([key, row]) => work(key, row) ?? line(key, row, values[key]))
}

/** Writes a number for real work, with a comment that names the default without this line. */
function work(key: string, row: Row): string[] | undefined {
  const value = workValueOf(row)
  if (value === undefined) return undefined
  return [`# ${row.about} Without this line: ${defaultOf(row) ?? row.absent}.`, `${key} = ${toml(value)}`]
}

function line(key: string, row: Row, value: string | undefined): string[] {
  const usual = defaultOf(row)
  if (value !== undefined || row.init === 'written') return [`# ${row.about}`, `${key} = ${toml(value ?? usual)}`]
  if (usual !== undefined) return [`# ${row.about}`, `# ${key} = ${toml(usual)}`]
  const absent = `Not set: ${row.absent ?? row.computed ?? 'off'}.`
  if (row.example === undefined) return [`# ${key}: ${row.about} ${absent}`]
  return [`# ${row.about} ${absent}`, `# ${key} = ${toml(row.example)}`]
}
