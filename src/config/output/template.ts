/** The annotated config file that `init` writes. */

import { providerTable } from '../extend.ts'
import { settingOf } from '../find.ts'
import type { Proposal } from '../known-providers.ts'
import { defaultOf, workValueOf } from '../layers/defaults.ts'
import { leafOf, type Setting } from '../setting.ts'
import { settings } from '../settings.ts'
import { toml } from './show.ts'

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
    ...(workspace === undefined ? offered('workspace_dir') : row('workspace_dir', workspace.replaceAll('$', '$$$$'))),
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
  workspace_dir: '~/braidclaw-workspace',
  'limits.max_run_seconds': 600,
  'limits.max_run_tokens': 200_000,
  'limits.max_run_usd': 1,
  'limits.max_conversation_tokens': 2_000_000,
  'limits.max_conversation_usd': 5,
  'limits.agent_daily_tokens': 100_000,
  'limits.agent_daily_usd': 5,
  'limits.daily_tokens': 1_000_000,
  'limits.daily_usd': 10,
  'channels.cli.tools_allow': ['file_read', 'file_list', 'time', 'memory_search', 'shell'],
  'memory.agent_dir': '~/.braidclaw/agents/default',
}

function defaultOfKey(key: string): unknown {
  const setting = settingOf(key)
  return setting === undefined ? undefined : defaultOf(setting)
}
