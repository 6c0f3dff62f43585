/** Entries into the typed Config: the one place where `max_tool_rounds` becomes `maxToolRounds`. */

import { isObject } from '../kit/json.ts'
import {
  type AgentConfig,
  autonomyLevels,
  type Config,
  logLevels,
  type Prices,
  type ProviderConfig,
  providerKinds,
  toolBackends,
} from './config.ts'
import { type Entries, isStrings, providerNames } from './layers/entries.ts'

/** The entries must have passed every check: what is missing or of another type here is a bug, and throws. */
export function assemble(entries: Entries, agents: { readonly [id: string]: AgentConfig } = {}): Config {
  const take = reader(entries, '')
  return {
    workspaceDir: take.text('workspace_dir'),
    defaultProvider: take.text('default_provider'),
    defaultModel: take.text('default_model'),
    defaultAgent: take.maybe('default_agent', take.text),
    agents,
    security: {
      autonomy: take.choice('security.autonomy', autonomyLevels),
      workspaceOnly: take.boolean('security.workspace_only'),
      forbiddenPaths: take.words('security.forbidden_paths'),
      forbiddenCommands: take.words('security.forbidden_commands'),
      allowCommands: take.words('security.allow_commands'),
      allowedDomains: take.words('security.allowed_domains'),
      allowedPorts: take.numbers('security.allowed_ports'),
      approveAllMedium: take.boolean('security.approve_all_medium'),
      allowTools: take.words('security.allow_tools'),
      auditLog: take.boolean('security.audit_log'),
    },
    limits: {
      maxToolRounds: take.number('limits.max_tool_rounds'),
      maxSameResults: take.maybe('limits.max_same_results', take.number),
      maxResponseBytes: take.number('limits.max_response_bytes'),
      toolTimeoutS: take.number('limits.tool_timeout_s'),
      shellTimeoutS: take.number('limits.shell_timeout_s'),
      shellTimeoutMaxS: take.number('limits.shell_timeout_max_s'),
      httpTimeoutS: take.number('limits.http_timeout_s'),
      maxOutputBytes: take.number('limits.max_output_bytes'),
      contextTokens: take.maybe('limits.context_tokens', take.number),
      maxParallel: take.number('limits.max_parallel'),
      maxTurnsAtOnce: take.number('limits.max_turns_at_once'),
      maxRunSeconds: take.maybe('limits.max_run_seconds', take.number),
      maxRunTokens: take.maybe('limits.max_run_tokens', take.number),
      maxRunUsd: take.maybe('limits.max_run_usd', take.number),
      maxConversationTokens: take.maybe('limits.max_conversation_tokens', take.number),
      maxConversationUsd: take.maybe('limits.max_conversation_usd', take.number),
      agentDailyTokens: take.maybe('limits.agent_daily_tokens', take.number),
      agentDailyUsd: take.maybe('limits.agent_daily_usd', take.number),
      dailyTokens: take.maybe('limits.daily_tokens', take.number),
      dailyUsd: take.maybe('limits.daily_usd', take.number),
    },
    providers: { models: Object.fromEntries(providerNames(entries).map((name) => [name, provider(entries, name)])) },
    channels: {
      cli: { enabled: take.boolean('channels.cli.enabled'), toolsAllow: take.maybe('channels.cli.tools_allow', take.words) },
      fifo: { approvers: take.words('channels.fifo.approvers') },
      discord: {
        enabled: take.boolean('channels.discord.enabled'),
        tokenEnv: take.text('channels.discord.token_env'),
        channelIds: take.words('channels.discord.channel_ids'),
        approvers: take.words('channels.discord.approvers'),
        api: take.maybe('channels.discord.api', take.text),
      },
    },
    tools: {
      dir: take.text('tools.dir'),
      executables: take.words('tools.executables'),
      backend: take.choice('tools.backend', toolBackends),
    },
    memory: {
      backend: take.choice('memory.backend', ['sqlite']),
      path: take.text('memory.path'),
      agentDir: take.maybe('memory.agent_dir', take.text),
      historyMax: take.number('memory.history_max'),
      historyKeep: take.number('memory.history_keep'),
    },
    receipts: { enabled: take.boolean('receipts.enabled'), path: take.text('receipts.path') },
    log: { level: take.choice('log.level', logLevels) },
  }
}

function provider(entries: Entries, name: string): ProviderConfig {
  const take = reader(entries, `providers.models.${name}.`)
  const kind = take.choice('kind', providerKinds)
  if (kind === 'reliable') return { kind, name, providers: take.words('providers') }
  if (kind === 'router') return { kind, name, routes: take.map('routes'), default: take.text('default') }
  if (kind === 'stub') return { kind, name, model: take.text('model') }
  if (kind === 'fifo')
    return { kind, name, model: take.text('model'), dir: take.text('dir'), totalTimeoutS: take.number('total_timeout_s') }
  const common = { name, model: take.text('model'), totalTimeoutS: take.number('total_timeout_s'), prices: prices(take) }
  if (kind === 'mock') return { kind, ...common, fixture: take.maybe('fixture', take.text) }
  return {
    kind,
    ...common,
    baseUrl: take.maybe('base_url', take.text),
    apiKeyEnv: take.maybe('api_key_env', take.text),
    stream: take.boolean('stream'),
    idleTimeoutS: take.number('idle_timeout_s'),
    maxRetries: take.number('max_retries'),
    maxConcurrent: take.number('max_concurrent'),
    maxOutputTokens: take.maybe('max_output_tokens', take.number),
    contextTokens: take.maybe('context_tokens', take.number),
    temperature: take.maybe('temperature', take.number),
  }
}

function prices(take: ReturnType<typeof reader>): Prices {
  return {
    input: take.maybe('price_input', take.number),
    output: take.maybe('price_output', take.number),
    cached: take.maybe('price_cached', take.number),
  }
}

function reader(entries: Entries, prefix: string) {
  const value = (key: string): unknown => entries.get(prefix + key)?.value
  const bug = (key: string, type: string): Error => new Error(`config: ${prefix}${key} is no ${type} after validation`)
  const is = <T>(type: string, guard: (raw: unknown) => raw is T) => {
    return (key: string): T => {
      const raw = value(key)
      if (!guard(raw)) throw bug(key, type)
      return raw
    }
  }
  return {
    text: is('text', (raw) => typeof raw === 'string'),
    number: is('number', (raw) => typeof raw === 'number'),
    boolean: is('boolean', (raw) => typeof raw === 'boolean'),
    words: is('list of text', isStrings),
    numbers: is('list of numbers', isNumbers),
    map: is('table', isMap),
    choice: <const T extends string>(key: string, values: readonly T[]): T => {
      const found = values.find((each) => each === value(key))
      if (found === undefined) throw bug(key, 'known value')
      return found
    },
    maybe: <T>(key: string, read: (key: string) => T): T | undefined => (value(key) === undefined ? undefined : read(key)),
  }
}

function isNumbers(raw: unknown): raw is readonly number[] {
  return Array.isArray(raw) && raw.every((item) => typeof item === 'number')
}

function isMap(raw: unknown): raw is { readonly [hint: string]: string } {
  return isObject(raw) && Object.values(raw).every((item) => typeof item === 'string')
}
