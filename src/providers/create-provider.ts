/** Makes the provider that a config table describes. The vendors' libraries are not loaded here but on the first request. */

import type { Provider } from '../runtime/port.ts'
import { createWired } from './http-provider.ts'
import { meteredProvider } from './metered.ts'
import { type CreateDeps, defaults, type ProviderConfig, type RouterConfig } from './wire/provider-settings.ts'

/** @throws ProviderFailure `bad_request` for a fixture that cannot be read */
export async function createProvider(name: string, config: ProviderConfig, deps: CreateDeps): Promise<Provider> {
  switch (config.kind) {
    case 'mock':
      return meteredProvider(await (await import('./mock.ts')).createMock({ name, config, deps }), {
        prices: config.prices,
        free: true,
        longestS: config.totalTimeoutS,
      })
    case 'stub':
      return meteredProvider((await import('./stub.ts')).createStub({ name, model: config.model ?? 'stub', count: deps.count }), {
        free: true,
      })
    case 'fifo': {
      const ask = await deps.brain({ dir: config.dir, timeoutMs: (config.totalTimeoutS ?? defaults.totalTimeoutS) * 1000 })
      const { createFifoProvider } = await import('./fifo/fifo-provider.ts')
      const provider = createFifoProvider({ name, ask, ...(config.model ? { model: config.model } : {}) })
      return meteredProvider(provider, { free: false, longestS: config.totalTimeoutS })
    }
    case 'reliable': {
      const providers = await Promise.all(config.providers.map((each) => deps.provider(each)))
      return (await import('./reliable.ts')).createReliable({ name, providers, log: deps.log })
    }
    case 'router':
      return createRouted(name, config, deps)
    default:
      return createWired({ name, config, deps })
  }
}

async function createRouted(name: string, config: RouterConfig, deps: CreateDeps): Promise<Provider> {
  const fallback = await deps.provider(config.default)
  const routes = new Map<string, Provider>()
  for (const [hint, to] of Object.entries(config.routes ?? {})) routes.set(hint, await deps.provider(to))
  return (await import('./router.ts')).createRouter({ name, fallback, routes, log: deps.log })
}
