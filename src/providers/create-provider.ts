/** Creates the provider that a table of [providers.models] describes. */

import type { Rows, Values } from '../kit/settings.ts'
import type { Provider } from '../runtime/port.ts'
import { providerKinds } from './list.ts'
import { meteredProvider } from './metered.ts'
import type { CreateDeps, ProviderKind } from './provider-kind.ts'

/** The validated table with its defaults. */
type Configured = Values<Rows> & { readonly kind: string; readonly name: string }

/** @throws ProviderFailure `bad_request` for an unusable setting: an unreadable fixture, missing FIFOs */
export async function createProvider({ kind, name, ...settings }: Configured, deps: CreateDeps): Promise<Provider> {
  const found: ProviderKind | undefined = providerKinds.find((each) => each.kind === kind)
  if (found === undefined) throw new Error(`no provider is of the kind "${kind}"`)
  const provider = await found.create({ name, settings, deps })
  if (found.budget === 'kept') return provider
  const { priceInput, priceOutput, priceCached, priceCacheWrite, totalTimeoutS } = settings
  const prices = {
    input: numberIn(priceInput),
    output: numberIn(priceOutput),
    cached: numberIn(priceCached),
    cacheWrite: numberIn(priceCacheWrite),
  }
  return meteredProvider(provider, { prices, free: found.budget === 'free', longestS: numberIn(totalTimeoutS) })
}

function numberIn(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
