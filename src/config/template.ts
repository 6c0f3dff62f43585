/** The annotated config file that `init` writes, and which providers the environment suggests. */

import type { ProviderKind } from './config.ts'
import { settingOf } from './find.ts'
import { defaultOf, workValueOf } from './layers/defaults.ts'
import { leafOf, type Setting } from './setting.ts'
import { settings } from './settings.ts'
import { toml } from './show.ts'

export type Proposal = {
  readonly name: string
  readonly kind: ProviderKind
  readonly model: string
  readonly baseUrl?: string
  readonly apiKeyEnv?: string
  /** The variable that made us think of it. */
  readonly because: string
}

/** In order of preference: the first becomes the default provider. */
export function proposeProviders(env: { readonly [name: string]: string | undefined }): readonly Proposal[] {
  const ollama = env.OLLAMA_HOST?.trim() ? ollamaUrl(env.OLLAMA_HOST.trim()) : undefined
  const all: readonly Proposal[] = [
    { name: 'openai', kind: 'openai', model: 'gpt-5.4-mini', apiKeyEnv: 'OPENAI_API_KEY', because: 'OPENAI_API_KEY' },
    { name: 'anthropic', kind: 'anthropic', model: 'claude-sonnet-5', apiKeyEnv: 'ANTHROPIC_API_KEY', because: 'ANTHROPIC_API_KEY' },
    {
      name: 'openrouter',
      kind: 'openai-compatible',
      model: 'openrouter/auto',
      baseUrl: 'https://openrouter.ai/api/v1',
      apiKeyEnv: 'OPENROUTER_API_KEY',
      because: 'OPENROUTER_API_KEY',
    },
  ]
  const local: readonly Proposal[] =
    ollama === undefined ? [] : [{ name: 'ollama', kind: 'openai-compatible', model: 'qwen3:8b', baseUrl: ollama, because: 'OLLAMA_HOST' }]
  return [...all.filter(({ because }) => (env[because] ?? '').trim() !== ''), ...local]
}

/** OLLAMA_HOST is what the server binds: "0.0.0.0", ":11434", "host", "host:port" or a URL. Nonsense proposes nothing. */
function ollamaUrl(host: string): string | undefined {
  const url = URL.parse(/^[a-z]+:\/\//i.test(host) ? host : `http://${host.startsWith(':') ? '127.0.0.1' : ''}${host}`)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') return undefined
  const name = url.hostname === '0.0.0.0' || url.hostname === '[::]' ? '127.0.0.1' : url.hostname
  const port = url.port || (/:80$/.test(host) ? '80' : /^https:/i.test(host) ? '443' : '11434')
  return `${url.protocol}//${name}:${port}${url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')}/v1`
}

/** Complete and valid as it stands; what is commented out shows the default, and is valid too when it is uncommented. */
export function defaultConfigToml({
  proposals,
  workspace,
}: {
  readonly proposals: readonly Proposal[]
  readonly workspace?: string
}): string {
  const [first] = proposals
  const top = [
    '# BraidClaw. Every key, its meaning and its default: docs/config.md; check this file with: braidclaw config validate',
    ...row('workspace_dir', workspace?.replaceAll('$', '$$$$')),
    ...row('default_provider', first?.name ?? 'local'),
    ...row('default_model', first?.model ?? 'mock'),
  ]
  const shown = [
    'security.autonomy',
    'security.workspace_only',
    'security.forbidden_paths',
    'security.forbidden_commands',
    'security.audit_log',
  ]
  const rest = [section('security', shown), section('limits', [])]
  const providers = [
    ['# Answers without any network; it is no language model.', '[providers.models.local]', 'kind = "mock"', 'model = "mock"'],
    ...(proposals.length === 0 ? [exampleProvider] : proposals.map(providerTable)),
  ]
  const last = [
    section('channels.cli', ['channels.cli.enabled']),
    section('tools', []),
    section('memory', ['memory.backend', 'memory.path']),
  ]
  const all = [top, ...rest, ...providers, ...last, section('receipts', ['receipts.enabled', 'receipts.path']), section('log', [])]
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

function providerTable({ name, kind, model, baseUrl, apiKeyEnv, because }: Proposal): string[] {
  return [
    `# Proposed because ${because} is set.`,
    `[providers.models.${name}]`,
    `kind = ${toml(kind)}`,
    `model = ${toml(model)}`,
    ...(baseUrl === undefined ? [] : [`base_url = ${toml(baseUrl)}`]),
    ...(apiKeyEnv === undefined ? [] : [`api_key_env = ${toml(apiKeyEnv)}`]),
  ]
}

/** Every key of a section: those in `shown` set to their default, the others commented out. */
function section(name: string, shown: readonly string[]): string[] {
  const mine = settings.filter(({ key }) => key.startsWith(`${name}.`))
  return [
    `[${name}]`,
    ...mine.flatMap((setting) => work(setting) ?? (shown.includes(setting.key) ? row(setting.key) : offered(setting.key))),
  ]
}

/** A number for real work is written out, with what holds when somebody takes the line away. */
function work(setting: Setting): string[] | undefined {
  const value = workValueOf(setting)
  if (value === undefined) return undefined
  const without = defaultOf(setting) ?? setting.absent
  return [`# ${setting.about} Without this line: ${without}.`, `${leafOf(setting.key)} = ${toml(value)}`]
}

function row(key: string, value: unknown = defaultOfKey(key)): string[] {
  return [`# ${settingOf(key)?.about ?? ''}`, `${leafOf(key)} = ${toml(value)}`]
}

function offered(key: string): string[] {
  const value = defaultOfKey(key)
  if (value !== undefined) return [`# ${settingOf(key)?.about ?? ''}`, `# ${leafOf(key)} = ${toml(value)}`]
  const setting = settingOf(key)
  return [`# ${setting?.about ?? ''} Not set: ${setting?.absent ?? 'off'}.`, `# ${leafOf(key)} = ${toml(examples[key])}`]
}

const examples: { readonly [key: string]: unknown } = {
  'limits.context_tokens': 128_000,
  'limits.max_run_seconds': 600,
  'limits.max_run_tokens': 200_000,
  'limits.max_run_usd': 1,
  'channels.cli.tools_allow': ['file_read', 'file_list', 'time', 'memory_search', 'shell'],
  'memory.agent_dir': '~/.braidclaw/agents/default',
}

function defaultOfKey(key: string): unknown {
  const setting = settingOf(key)
  return setting === undefined ? undefined : defaultOf(setting)
}
