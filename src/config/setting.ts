/** What a row of the table of settings is, and how its key is spelled elsewhere. */

import type { ProviderKind } from './config.ts'

/** What a word must look like; `says` completes "must be …". */
export const forms = {
  agent: { pattern: '^[a-z0-9][a-z0-9-]{0,63}$', says: 'the name of an agent: lower-case letters, digits and "-"' },
  any: { pattern: '^[^\\u0000]+$', says: 'some text' },
  command: { pattern: '^[^\\s/\\u0000]+$', says: 'a command name without path or arguments, such as "rm"' },
  domain: {
    pattern: '^(\\*\\.)?[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$',
    says: 'a host name such as "api.example.org", or "*.example.org" for what lies below it (no scheme, port or path)',
  },
  provider: { pattern: '^[A-Za-z0-9][A-Za-z0-9_-]*$', says: 'the name of a provider: letters, digits, "-" and "_"' },
  snowflake: { pattern: '^\\d{17,20}$', says: 'a Discord channel id: 17 to 20 digits ("Copy Channel ID")' },
  tool: { pattern: '^[A-Za-z0-9_.-]+$', says: 'the name of a tool, such as "file_read"' },
  variable: { pattern: '^[A-Z_][A-Z0-9_]*$', says: 'the NAME of an environment variable, such as "OPENAI_API_KEY", not the key itself' },
} as const

type Common = {
  /** Dotted, as in TOML; `*` stands for a provider's name. */
  readonly key: string
  readonly about: string
  /** In a project's file: refused altogether, or accepted only when it tightens what the user has (lists: see `stricter`). */
  readonly project?: 'refused' | 'stricter'
  /** A short environment variable besides the generic one. */
  readonly env?: string
  /** Of a provider's key: the kinds that have it, and those that cannot do without. */
  readonly kinds?: readonly ProviderKind[]
  readonly required?: readonly ProviderKind[]
  /** What stands in when the key is absent, when that is no plain default. */
  readonly absent?: string
}

export type Setting = Common &
  (
    | {
        readonly type: 'text'
        readonly form: keyof typeof forms
        readonly default?: string
        readonly byKind?: { readonly [kind: string]: string }
      }
    | { readonly type: 'choice'; readonly values: readonly string[]; readonly default?: string }
    | { readonly type: 'boolean'; readonly default: boolean }
    | {
        readonly type: 'whole' | 'number'
        readonly min: number
        readonly max: number
        readonly unit: string
        readonly default?: number
        /** In place of the default where the user has no config file; `init` writes it into a new one. */
        readonly work?: number
      }
    | { readonly type: 'path'; readonly default?: string; readonly relative?: boolean }
    | { readonly type: 'url' }
    | { readonly type: 'paths'; readonly default: readonly string[] }
    | { readonly type: 'words'; readonly form: keyof typeof forms; readonly default?: readonly string[]; readonly filled?: boolean }
    | { readonly type: 'ports'; readonly default: readonly number[] }
    | { readonly type: 'map' }
  )

/** A time limit. */
export const seconds = { type: 'number', min: 0.01, max: 86_400, unit: 'seconds' } as const

/** `providers.models.local.kind` → `providers.models.*.kind`. */
export function patternOf(key: string): string {
  return key.replace(/^providers\.models\.[^.]+/, 'providers.models.*')
}

/** Whether a variable may mean something to the configuration. */
export function isOurVariable(name: string): boolean {
  return ours.includes(name) || (prefixes.some((prefix) => name.startsWith(prefix)) && !prefixes.includes(name))
}

const ours = ['PLANCKCLAW_DIR', 'HISTORY_MAX', 'HISTORY_KEEP', 'DISCORD_CHANNEL_ID']
const prefixes = ['BRAIDCLAW_', 'SHELLCLAW_']

/** The last part of a dotted key. */
export function leafOf(key: string): string {
  return key.slice(key.lastIndexOf('.') + 1)
}

/** `BRAIDCLAW_LIMITS_MAX_TOOL_ROUNDS`; providers' own keys have none, their names may hold anything. */
export function variableOf(setting: Setting): string | undefined {
  return setting.key.includes('*') ? undefined : `BRAIDCLAW_${setting.key.replaceAll('.', '_').toUpperCase()}`
}
