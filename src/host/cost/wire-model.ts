/** Describes a model behind the network as one whose window can be learnt. A turn of a model without a network does not load this file. */

import type { WireProvider } from '../../config/config.ts'
import { baseUrlOf, vendors } from '../../providers/wire/dialects.ts'
import { askWindow } from '../../providers/wire/facts/ask-window.ts'
import { vendorHosts } from '../../providers/wire/facts/model-facts.ts'
import { pause } from '../../service/sleep.ts'
import { createProviderFetch } from '../../workspace/net/provider-fetch.ts'
import { factsFileOf, factsOf } from './model-facts.ts'
import type { Around, AskedModel } from './model-window.ts'

/** Returns the model that a provider over the network is asked for. */
export async function wireModel({ config, context }: Around, found: WireProvider): Promise<AskedModel> {
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
  const deps = { fetch: createProviderFetch({ baseUrl: base }), sleep: pause }
  return askWindow({ name, base, headers, model, deps, signal })
}
