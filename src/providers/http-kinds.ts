/** Registers the providers that use HTTP: three protocols with one set of settings. */

import type { Rows } from '../kit/settings.ts'
import type { Creating } from './provider-kind.ts'
import { wireRows } from './rows.ts'
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

export const openaiCompatible = kindOf('openai-compatible', compatibleRows)
export const anthropic = kindOf('anthropic', anthropicRows)
export const openai = kindOf('openai', openaiRows)

function kindOf<Kind extends WireKind, Settings extends Rows>(kind: Kind, settings: Settings) {
  return { kind, settings, budget: 'kept', create: (given: Creating<typeof wireRows>) => wired(kind, given) } as const
}

async function wired(kind: WireKind, { name, settings, deps }: Creating<typeof wireRows>) {
  const apiKey = settings.apiKeyEnv === undefined ? undefined : deps.secret(settings.apiKeyEnv)
  const { maxResponseBytes, longestAnswer } = deps
  const { createWired } = await import('./http-provider.ts')
  return createWired({ name, config: { kind, ...settings, apiKey, maxResponseBytes, longestAnswer }, deps })
}
