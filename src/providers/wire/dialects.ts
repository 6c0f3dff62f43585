/** Lists how the three protocols differ before a request: their address, the name of their key, and the header that carries it. */

import type { WireConfig, WireKind } from './provider-settings.ts'

export type Vendor = {
  /** Undefined when there is no default server. */
  readonly baseUrl?: string
  readonly keyEnv: string
  readonly contextTokens: number
  /** Returns the headers that carry the key on a plain request. */
  headers(apiKey: string): { readonly [name: string]: string }
}

export const vendors: { readonly [kind in WireKind]: Vendor } = {
  'openai-compatible': { keyEnv: 'OPENAI_API_KEY', contextTokens: 32_768, headers: bearer },
  anthropic: {
    baseUrl: 'https://api.anthropic.com/v1',
    keyEnv: 'ANTHROPIC_API_KEY',
    contextTokens: 200_000,
    headers: (apiKey) => ({ 'x-api-key': apiKey, 'anthropic-version': '2023-06-01' }),
  },
  openai: { baseUrl: 'https://api.openai.com/v1', keyEnv: 'OPENAI_API_KEY', contextTokens: 128_000, headers: bearer },
}

export function baseUrlOf(config: WireConfig): string | undefined {
  const url = config.baseUrl ?? vendors[config.kind].baseUrl
  return url === undefined ? undefined : withoutSlashes(url)
}

function withoutSlashes(url: string): string {
  let end = url.length
  while (url[end - 1] === '/') end--
  return url.slice(0, end)
}

export function keyHint(config: WireConfig): string {
  return `check the key in ${config.apiKeyEnv ?? vendors[config.kind].keyEnv} (api_key_env)`
}

function bearer(apiKey: string): { readonly [name: string]: string } {
  return { authorization: `Bearer ${apiKey}` }
}
