/** Describes a model behind the network as one whose window can be learnt. */

import type { Config, WireProvider } from '../../config/config.ts'
import { sleep } from '../../kit/abort.ts'
import type { ModelKey } from '../../memory/spend/model-windows.ts'
import type { AskedWindow } from '../../providers/wire/facts/ask-window.ts'
import { vendorHosts } from '../../providers/wire/facts/model-facts.ts'
import { baseUrlOf, vendors } from '../../providers/wire/provider-settings.ts'
import { createProviderFetch } from '../../workspace/net/provider-fetch.ts'
import { type Fact, factsFileOf, factsOf } from './model-facts.ts'

/** One model that may answer a request. */
export type AskedModel = {
  readonly key: ModelKey
  /** The window when nothing is known of it. */
  readonly usual: number
  /** Comes from the configuration or the table of known models. */
  readonly known?: Fact<number> | undefined
  /** Tells whether `context_tokens` can be set for its provider; what was learnt of another one is not kept. */
  readonly isConfigured: boolean
  /** Asks the server; absent: there is none to ask. */
  readonly ask?: (signal: AbortSignal) => Promise<AskedWindow>
}

export type WireContext = {
  readonly config: Config
  readonly context: { readonly home: string; readonly env: { readonly [name: string]: string | undefined } }
}

/** Returns the model that a provider over the network is asked for. */
export async function wireModel({ config, context }: WireContext, found: WireProvider): Promise<AskedModel> {
  const model = found.name === config.defaultProvider ? config.defaultModel : found.model
  const { contextTokens: known } = await factsOf(found, model, await factsFileOf(context.home))
  const { origin = '', hostname = '', pathname = '' } = URL.parse(baseUrlOf(found) ?? '') ?? {}
  const isAsked = origin !== '' && !Object.hasOwn(vendorHosts, hostname)
  return {
    key: { provider: found.name, address: `${origin}${pathname}`, model },
    usual: vendors[found.kind].contextTokens,
    known,
    isConfigured: true,
    ...(isAsked ? { ask: (signal) => askServer(found, model, context.env[found.apiKeyEnv ?? ''], signal) } : {}),
  }
}

async function askServer({ name, kind, ...found }: WireProvider, model: string, apiKey: string | undefined, signal: AbortSignal) {
  const base = baseUrlOf({ ...found, kind }) ?? ''
  const headers = apiKey ? vendors[kind].headers(apiKey) : {}
  const deps = { fetch: createProviderFetch({ baseUrl: base }), sleep: sleep }
  const { askWindow } = await import('../../providers/wire/facts/ask-window.ts')
  return askWindow({ name, base, headers, model, deps, signal })
}
