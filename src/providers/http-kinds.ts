/** Registers the providers that use HTTP: three protocols with one set of settings. */

import type { Rows } from '../kit/settings.ts'
import type { Creating } from './provider-kind.ts'
import { model, wireRows } from './rows.ts'
import type { WireKind } from './wire/provider-settings.ts'

const dialect = {
  type: 'choice',
  values: ['functiongemma', 'gemma4'],
  absent: 'chat completions',
  about: "Ask at /completions, in the model's own tokens (docs/models.md).",
} as const
const compatibleRows = { ...wireRows, base_url: { ...wireRows.base_url, required: true }, dialect } as const satisfies Rows
const anthropicRows = { ...wireRows, api_key_env: { ...wireRows.api_key_env, default: 'ANTHROPIC_API_KEY' } } as const satisfies Rows
const openaiRows = { ...wireRows, api_key_env: { ...wireRows.api_key_env, default: 'OPENAI_API_KEY' } } as const satisfies Rows

const { base_url, api_key_env, stream, ...ownRows } = wireRows
const pluginRows = {
  plugin: { type: 'text', form: 'plugin', required: true, about: 'The approved plugin with the capability "provider" (docs/plugins.md).' },
  ...ownRows,
  model: { ...model, default: 'default' },
  max_concurrent: { ...wireRows.max_concurrent, default: 4 },
} as const satisfies Rows

export const openaiCompatible = kindOf('openai-compatible', compatibleRows)
export const anthropic = kindOf('anthropic', anthropicRows)
export const openai = kindOf('openai', openaiRows)
/** A plugin is asked in the protocol of chat completions, through a fetch that reaches its process. */
export const plugin = kindOf('plugin', pluginRows)

function kindOf<Kind extends WireKind, Settings extends Rows>(kind: Kind, settings: Settings) {
  return { kind, settings, budget: 'kept', create: (given: Creating<typeof wireRows>) => wired(kind, given) } as const
}

async function wired(kind: WireKind, { name, settings, deps }: Creating<typeof wireRows>) {
  const apiKey = settings.apiKeyEnv === undefined ? undefined : deps.secret(settings.apiKeyEnv)
  const { maxResponseBytes, longestAnswer, sees } = deps
  const { createWired } = await import('./http-provider.ts')
  return createWired({ name, config: { kind, ...settings, apiKey, maxResponseBytes, longestAnswer, sees }, deps })
}
