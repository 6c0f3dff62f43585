/** Defines the resolved configuration that the rest of the program reads: all defaults filled in, all paths absolute, no secrets. */

import type { JsonObject } from '../kit/json.ts'
import { camel, type Rows, type Values, withDefaults } from '../kit/settings.ts'
import type { providerKinds } from '../providers/list.ts'
import type { topRows } from './table.ts'
import { rowsOfKind, type sections } from './table.ts'
import type { ConfigValue } from './text/check.ts'

type ConfiguredKind = (typeof providerKinds)[number]

type OfKind<K> = K extends { readonly kind: infer Name; readonly settings: infer R extends Rows }
  ? { readonly kind: Name; readonly name: string } & Values<R>
  : never

/** One table of [providers.models], discriminated by `kind`. */
export type ProviderConfig = OfKind<ConfiguredKind>

/** A provider reached over HTTP. `apiKeyEnv` names a variable, which must be set only when the provider is used. */
export type WireProvider = Extract<ProviderConfig, { readonly maxRetries: number }> & {
  readonly baseUrl?: string
  readonly apiKeyEnv?: string
}

/** The settings of one agent from agents.json. `soul` is an absolute path inside the home folder. */
export type AgentConfig = { readonly soul?: string; readonly model?: string }

/** Uses the camel-case names of the rows; each row's `about` text explains its key. */
export type Config = Values<typeof topRows> & { readonly [Name in keyof typeof sections]: Values<(typeof sections)[Name]> } & {
  /** The agents listed in agents.json; every folder under agents/ is an agent too. */
  readonly agents: { readonly [id: string]: AgentConfig }
  readonly providers: { readonly models: { readonly [name: string]: ProviderConfig } }
  /** The tables of [mcp.servers.ID] as they stand there, and `mcp.servers` of a configuration program. */
  readonly mcp: { readonly servers: { readonly [id: string]: JsonObject } }
  /** Each channel types its own settings: see channelSettings. */
  readonly channels: { readonly [name: string]: { readonly [key: string]: ConfigValue | undefined } }
  /**
   * Not a setting: the workspace is a private copy of this folder. What stays in the copy needs no yes; the folder's own rules hold, and whether
   * it is trusted counts.
   */
  readonly copyOf?: string
}

export type LimitsConfig = Config['limits']

/** Checks the rows of the provider's kind, not the keys of the object, because an optional key may be missing. */
export function isWireProvider(provider: ProviderConfig): provider is WireProvider {
  return Object.hasOwn(rowsOfKind(provider.kind) ?? {}, 'max_retries')
}

/** Always use this function to look up a name that a person typed: `models["constructor"]` is not a provider. */
export function providerNamed(config: Config, name: string): ProviderConfig | undefined {
  const { models } = config.providers
  return Object.hasOwn(models, name) ? models[name] : undefined
}

/** Returns a provider and all providers that it passes requests to. The configuration has no cycles. */
export function reachableProviders(config: Config, name: string): readonly ProviderConfig[] {
  const found = providerNamed(config, name)
  if (!found) return []
  const next = found.kind === 'reliable' ? found.providers : found.kind === 'router' ? [found.default, ...Object.values(found.routes)] : []
  return [...new Set([found, ...next.flatMap((other) => reachableProviders(config, other))])]
}

/** Returns the settings of [channels.NAME], typed by the rows of that channel. */
export function channelSettings<const R extends Rows>(
  { channels }: Pick<Config, 'channels'>,
  { name, settings }: { readonly name: string; readonly settings: R },
): Values<R> {
  const values = Object.hasOwn(channels, name) ? channels[name] : undefined
  return withDefaults(settings, (key) => values?.[camel(key)])
}

/** Returns the tools listed in channels.cli.tools_allow; undefined means every built-in tool. */
export function allowedTools({ channels }: Pick<Config, 'channels'>): readonly string[] | undefined {
  const allowed = channels.cli?.toolsAllow
  return Array.isArray(allowed) ? withParts(allowed.filter((name) => typeof name === 'string')) : undefined
}

/** Adds to `shell` the tools for its commands in the background. */
export function withParts(tools: readonly string[]): readonly string[] {
  return tools.includes('shell') ? [...new Set([...tools, 'shell_output', 'shell_stop'])] : tools
}

export type ConfigSource = 'flag' | 'agent' | 'environment' | 'project' | 'user' | 'default'

/** Where a value came from; `where` is a file, a variable, a flag or "built in". Line and column count from 1. */
export type Origin = { readonly source: ConfigSource; readonly where: string; readonly line?: number; readonly column?: number }

/** Maps each dotted TOML key (`security.autonomy`) to its origin. */
export type Origins = { readonly [key: string]: Origin }

/**
 * `file` is the config file, the environment variable or the flag that contains the error; `message` is a whole sentence that says what to
 * do.
 */
export type ConfigProblem = {
  readonly file: string
  readonly line?: number
  readonly column?: number
  readonly key: string
  readonly message: string
}

/** Formats a problem as one line for a person: `/home/me/.braidclaw/config.toml:6:12: security.autonomy: …`. */
export function describeProblem({ file, line, column, key, message }: ConfigProblem): string {
  const at = line === undefined ? file : column === undefined ? `${file}:${line}` : `${file}:${line}:${column}`
  return key === '' ? `${at}: ${message}` : `${at}: ${key}: ${message}`
}
