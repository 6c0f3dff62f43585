/** Registers the providers that use HTTP: three protocols with one set of settings. */

import type { Rows } from '../kit/settings.ts'
import type { Creating, ProviderKind } from './provider-kind.ts'
import { wireRows } from './rows.ts'
import type { WireKind } from './wire/provider-settings.ts'

const compatibleRows = { ...wireRows, base_url: { ...wireRows.base_url, required: true } } as const satisfies Rows
const anthropicRows = { ...wireRows, api_key_env: { ...wireRows.api_key_env, default: 'ANTHROPIC_API_KEY' } } as const satisfies Rows
const openaiRows = { ...wireRows, api_key_env: { ...wireRows.api_key_env, default: 'OPENAI_API_KEY' } } as const satisfies Rows

export const openaiCompatible = {
  kind: 'openai-compatible',
  settings: compatibleRows,
  budget: 'kept',
  create: (given) => wired('openai-compatible', given),
} as const satisfies ProviderKind<typeof compatibleRows>

export const anthropic = {
  kind: 'anthropic',
  settings: anthropicRows,
  budget: 'kept',
  create: (given) => wired('anthropic', given),
} as const satisfies ProviderKind<typeof anthropicRows>

export const openai = {
  kind: 'openai',
  settings: openaiRows,
  budget: 'kept',
  create: (given) => wired('openai', given),
} as const satisfies ProviderKind<typeof openaiRows>

async function wired(kind: WireKind, { name, settings, deps }: Creating<typeof wireRows>) {
  const apiKey = settings.apiKeyEnv === undefined ? undefined : deps.secret(settings.apiKeyEnv)
  const { maxResponseBytes, longestAnswer } = deps
  const { createWired } = await import('./http-provider.ts')
  return createWired({ name, config: { kind, ...settings, apiKey, maxResponseBytes, longestAnswer }, deps })
}
