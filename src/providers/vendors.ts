/** The three wires we speak, one row each; their libraries are imported when the first request is made and not before. */

import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { Delta } from './merge.ts'
import type { Marks } from './prompt.ts'
import type { WireConfig, WireKind } from './settings.ts'

type Build = {
  readonly baseURL: string
  readonly apiKey: string | undefined
  readonly model: string
  readonly fetch: typeof globalThis.fetch
}

export type Vendor = {
  /** Undefined: there is no such thing as the default server. */
  readonly baseUrl?: string
  readonly keyEnv: string
  readonly contextTokens: number
  readonly marks: Marks
  readonly delta: Delta
  model(build: Build): Promise<LanguageModelV4>
  /** How the key travels on a plain request (listing the models). */
  headers(apiKey: string): { readonly [name: string]: string }
}

const cacheHere = { anthropic: { cacheControl: { type: 'ephemeral' } } } as const

export const vendors: { readonly [kind in WireKind]: Vendor } = {
  'openai-compatible': {
    keyEnv: 'OPENAI_API_KEY',
    contextTokens: 32_768,
    marks: {},
    delta: { within: '"delta":{', key: '"content":"' },
    async model({ baseURL, apiKey, model, fetch }) {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
      // The name is the namespace of its metadata; "openaiCompatible" itself would be copied into the request body.
      return createOpenAICompatible({ name: 'compatible', baseURL, apiKey, fetch, includeUsage: true }).chatModel(model)
    },
    headers: bearer,
  },
  anthropic: {
    baseUrl: 'https://api.anthropic.com/v1',
    keyEnv: 'ANTHROPIC_API_KEY',
    contextTokens: 200_000,
    // Two fixed breakpoints and the automatic one at the end; eager tool streaming would trade valid arguments for speed.
    marks: { call: { anthropic: { ...cacheHere.anthropic, toolStreaming: false } }, prefixEnd: cacheHere },
    delta: { within: '"type":"text_delta"', key: '"text":"' },
    async model({ baseURL, apiKey, model, fetch }) {
      const { createAnthropic } = await import('@ai-sdk/anthropic')
      return createAnthropic({ baseURL, apiKey: apiKey ?? '', fetch }).languageModel(model)
    },
    headers: (apiKey) => ({ 'x-api-key': apiKey, 'anthropic-version': '2023-06-01' }),
  },
  openai: {
    baseUrl: 'https://api.openai.com/v1',
    keyEnv: 'OPENAI_API_KEY',
    contextTokens: 128_000,
    // Nothing is kept over there: reasoning comes back encrypted and is sent along again.
    marks: { call: { openai: { store: false } } },
    delta: { within: '"type":"response.output_text.delta"', key: '"delta":"' },
    async model({ baseURL, apiKey, model, fetch }) {
      const { createOpenAI } = await import('@ai-sdk/openai')
      return createOpenAI({ baseURL, apiKey: apiKey ?? '', fetch }).responses(model)
    },
    headers: bearer,
  },
}

export function baseUrlOf(config: WireConfig): string | undefined {
  return (config.baseUrl ?? vendors[config.kind].baseUrl)?.replace(/\/+$/, '')
}

export function keyHint(config: WireConfig): string {
  return `check the key in ${config.apiKeyEnv ?? vendors[config.kind].keyEnv} (api_key_env)`
}

function bearer(apiKey: string): { readonly [name: string]: string } {
  return { authorization: `Bearer ${apiKey}` }
}
