/** The resolved configuration the rest of the program sees: every default filled in, every path absolute, no secret inside. */

import { camel, type Rows, type Values, withDefaults } from '../kit/settings.ts'
import type { providerKinds } from '../providers/list.ts'
import { rowsOfKind, type sections } from './table.ts'
import type { Value } from './text/check.ts'
import type { topRows } from './top-settings.ts'

type Kind = (typeof providerKinds)[number]

type OfKind<K> = K extends { readonly kind: infer Name; readonly settings: infer R extends Rows }
  ? { readonly kind: Name; readonly name: string } & Values<R>
  : never

/** A table of [providers.models], told apart by its kind. */
export type ProviderConfig = OfKind<Kind>

export type ProviderKindName = Kind['kind']

/** A provider behind HTTP. `apiKeyEnv` names a variable; whether it is set matters only when the provider is used. */
export type WireProvider = Extract<ProviderConfig, { readonly maxRetries: number }>

/** What agents.json says of one agent. `soul` is an absolute path inside the home. */
export type AgentConfig = { readonly soul?: string; readonly model?: string }

/** By the names of the rows, in camel case: what each key means is said by its row. */
export type Config = Values<typeof topRows> & { readonly [Name in keyof typeof sections]: Values<(typeof sections)[Name]> } & {
  /** Those of agents.json; any folder under agents/ is one as well. */
  readonly agents: { readonly [id: string]: AgentConfig }
  readonly providers: { readonly models: { readonly [name: string]: ProviderConfig } }
  /** Typed by the channel itself: see channelSettings. */
  readonly channels: { readonly [name: string]: { readonly [key: string]: Value | undefined } }
}

export type LimitsConfig = Config['limits']

/** By the rows of its kind, never by its keys: an optional key may be missing. */
export function isWireProvider(provider: ProviderConfig): provider is WireProvider {
  return Object.hasOwn(rowsOfKind(provider.kind) ?? {}, 'max_retries')
}

/** The only safe way to look up a name that a person typed: `models["constructor"]` is not a provider. */
export function providerNamed(config: Config, name: string): ProviderConfig | undefined {
  const { models } = config.providers
  return Object.hasOwn(models, name) ? models[name] : undefined
}

/** What stands in [channels.NAME], by the rows of that channel. */
export function channelSettings<const R extends Rows>(
  { channels }: Pick<Config, 'channels'>,
  { name, settings }: { readonly name: string; readonly settings: R },
): Values<R> {
  const said = Object.hasOwn(channels, name) ? channels[name] : undefined
  return withDefaults(settings, (key) => said?.[camel(key)])
}

/** The tools that channels.cli.tools_allow leaves; undefined: every built-in one. */
export function allowedTools({ channels }: Pick<Config, 'channels'>): readonly string[] | undefined {
  const allowed = channels.cli?.toolsAllow
  return Array.isArray(allowed) ? allowed.filter((name) => typeof name === 'string') : undefined
}

export type Source = 'flag' | 'agent' | 'environment' | 'project' | 'user' | 'default'

/** Where a value came from; `where` is a file, a variable, a flag or "built in". Line and column count from 1. */
export type Origin = { readonly source: Source; readonly where: string; readonly line?: number; readonly column?: number }

/** By dotted key as written in TOML (`security.autonomy`). */
export type Origins = { readonly [key: string]: Origin }

/** `file` is the config file, the environment variable or the flag that is to blame; `message` is a whole sentence with what to do. */
export type ConfigProblem = {
  readonly file: string
  readonly line?: number
  readonly column?: number
  readonly key: string
  readonly message: string
}

/** One line for a person: `/home/me/.braidclaw/config.toml:6:12: security.autonomy: …`. */
export function describeProblem({ file, line, column, key, message }: ConfigProblem): string {
  const at = line === undefined ? file : column === undefined ? `${file}:${line}` : `${file}:${line}:${column}`
  return key === '' ? `${at}: ${message}` : `${at}: ${key}: ${message}`
}
