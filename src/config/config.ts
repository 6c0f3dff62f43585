/** The resolved configuration the rest of the program sees: every default filled in, every path absolute, no secret inside. */

export const autonomyLevels = ['readonly', 'supervised', 'full'] as const
export type Autonomy = (typeof autonomyLevels)[number]

export const logLevels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]

export const wireKinds = ['openai-compatible', 'anthropic', 'openai'] as const
export const providerKinds = ['mock', ...wireKinds, 'reliable', 'router', 'stub', 'fifo'] as const
export type ProviderKind = (typeof providerKinds)[number]

export const toolBackends = ['native', 'bash', 'llm'] as const
export type ToolBackend = (typeof toolBackends)[number]

/** US dollars per million tokens; absent means unknown, not free. */
export type Prices = { readonly input?: number; readonly output?: number; readonly cached?: number }

export type MockProvider = {
  readonly kind: 'mock'
  readonly name: string
  readonly model: string
  /** Absolute path of a JSON file of scripted responses; without it the offline helper answers. */
  readonly fixture?: string
  readonly totalTimeoutS: number
  readonly prices: Prices
}

/** Answers "stub response N", for tests of scripts: no network, and N counts the calls of an agent. */
export type StubProvider = { readonly kind: 'stub'; readonly name: string; readonly model: string }

/** Whoever reads `dir`/brain_in and writes `dir`/brain_out. */
export type FifoProvider = {
  readonly kind: 'fifo'
  readonly name: string
  readonly model: string
  readonly dir: string
  readonly totalTimeoutS: number
}

/** A provider behind HTTP. `apiKeyEnv` names a variable; whether it is set matters only when the provider is used. */
export type WireProvider = {
  readonly kind: (typeof wireKinds)[number]
  readonly name: string
  readonly model: string
  readonly baseUrl?: string
  readonly apiKeyEnv?: string
  readonly stream: boolean
  readonly idleTimeoutS: number
  readonly totalTimeoutS: number
  readonly maxRetries: number
  readonly maxConcurrent: number
  readonly maxOutputTokens?: number
  /** The model's context window. */
  readonly contextTokens?: number
  readonly temperature?: number
  readonly prices: Prices
}

/** `providers` are names of other providers, in the order they are tried; each uses its own model. */
export type ReliableProvider = { readonly kind: 'reliable'; readonly name: string; readonly providers: readonly string[] }

/** `routes` maps a metadata hint to a provider's name; a hint without a route goes to `default`. */
export type RouterProvider = {
  readonly kind: 'router'
  readonly name: string
  readonly routes: { readonly [hint: string]: string }
  readonly default: string
}

export type ProviderConfig = MockProvider | StubProvider | FifoProvider | WireProvider | ReliableProvider | RouterProvider

export type SecurityConfig = {
  readonly autonomy: Autonomy
  readonly workspaceOnly: boolean
  readonly forbiddenPaths: readonly string[]
  readonly forbiddenCommands: readonly string[]
  /** In addition to the built-in allow-list. */
  readonly allowCommands: readonly string[]
  readonly allowedDomains: readonly string[]
  /** In addition to 80 and 443. */
  readonly allowedPorts: readonly number[]
  readonly approveAllMedium: boolean
  /** Executables of low risk. */
  readonly allowTools: readonly string[]
  readonly auditLog: boolean
}

/** Absent means no limit. */
export type LimitsConfig = {
  readonly maxToolRounds: number
  readonly maxSameResults?: number
  readonly maxResponseBytes: number
  readonly toolTimeoutS: number
  readonly shellTimeoutS: number
  /** The longest that a call may ask for. */
  readonly shellTimeoutMaxS: number
  readonly httpTimeoutS: number
  readonly maxOutputBytes: number
  /** Absent: as much as suits the model's context window. */
  readonly contextTokens?: number
  readonly maxParallel: number
  /** In one process. */
  readonly maxTurnsAtOnce: number
  readonly maxRunSeconds?: number
  readonly maxRunTokens?: number
  readonly maxRunUsd?: number
  readonly maxConversationTokens?: number
  readonly maxConversationUsd?: number
  /** Of each agent, and of the whole home, in a UTC day. */
  readonly agentDailyTokens?: number
  readonly agentDailyUsd?: number
  readonly dailyTokens?: number
  readonly dailyUsd?: number
}

/** `approvers`: who may answer there what a call needs a yes for. `tokenEnv` names a variable; `api` absent: Discord's own. */
export type DiscordConfig = {
  readonly enabled: boolean
  readonly tokenEnv: string
  readonly approvers: readonly string[]
  readonly channelIds: readonly string[]
  readonly api?: string
}

/** What agents.json says of one agent. `soul` is an absolute path inside the home. */
export type AgentConfig = { readonly soul?: string; readonly model?: string }

export type Config = {
  readonly workspaceDir: string
  /** Absent: "default" for the filter, none for `agent`. There may be no such agent. */
  readonly defaultAgent?: string
  /** Those of agents.json; any folder under agents/ is one as well. */
  readonly agents: { readonly [id: string]: AgentConfig }
  /** A key of `providers`. */
  readonly defaultProvider: string
  /** The model asked of the default provider; for `reliable` and `router` that of the first provider they would ask. */
  readonly defaultModel: string
  readonly security: SecurityConfig
  readonly limits: LimitsConfig
  readonly providers: { readonly models: { readonly [name: string]: ProviderConfig } }
  /** `toolsAllow` absent: every built-in tool. */
  readonly channels: {
    readonly cli: { readonly enabled: boolean; readonly toolsAllow?: readonly string[] }
    readonly fifo: { readonly approvers: readonly string[] }
    readonly discord: DiscordConfig
  }
  /** `executables`: those of `dir` that every turn offers. */
  readonly tools: { readonly dir: string; readonly executables: readonly string[]; readonly backend: ToolBackend }
  /** `agentDir`: instead of agents/default. */
  readonly memory: {
    readonly backend: 'sqlite'
    readonly path: string
    readonly agentDir?: string
    readonly historyMax: number
    readonly historyKeep: number
  }
  readonly receipts: { readonly enabled: boolean; readonly path: string }
  readonly log: { readonly level: LogLevel }
}

/** By its kind, never by its keys: a configuration that was written down and read again has lost the keys without a value. */
export function isWireProvider(provider: ProviderConfig): provider is WireProvider {
  return wireKinds.some((kind) => kind === provider.kind)
}

/** The only safe way to look up a name that a person typed: `models["constructor"]` is not a provider. */
export function providerNamed(config: Config, name: string): ProviderConfig | undefined {
  const { models } = config.providers
  return Object.hasOwn(models, name) ? models[name] : undefined
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
