/** Provides a router that picks another provider by the request's `metadata.hint`. */

import type { Rows } from '../kit/settings.ts'
import type { Log, Provider } from '../runtime/port.ts'
import type { ProviderKind } from './provider-kind.ts'
import { common, ownModel } from './reliable.ts'

const settings = {
  routes: { type: 'map', required: true, about: 'Which provider answers which hint: { cheap = "local", hard = "openai" }.' },
  default: {
    type: 'text',
    form: 'provider',
    required: true,
    about: 'The provider for a request without a hint, or with one that has no route.',
  },
} as const satisfies Rows

export const router = {
  kind: 'router',
  settings,
  budget: 'kept',
  async create({ name, settings, deps: { provider, log } }) {
    const routes = new Map<string, Provider>()
    for (const [hint, to] of Object.entries(settings.routes)) routes.set(hint, await provider(to))
    return createRouter({ name, fallback: await provider(settings.default), routes, log })
  },
} as const satisfies ProviderKind<typeof settings>

export function createRouter(options: {
  readonly name: string
  readonly fallback: Provider
  readonly routes: ReadonlyMap<string, Provider>
  readonly log: Log
}): Provider {
  const { name, fallback, routes, log } = options

  function pick(hint: unknown): Provider {
    if (hint === undefined || hint === null) return fallback
    const routed = typeof hint === 'string' ? routes.get(hint) : undefined
    if (routed === undefined) log('warn', 'provider hint unknown', { provider: name, hint, known: [...routes.keys()], to: fallback.name })
    return routed ?? fallback
  }

  return {
    name,
    capabilities: () => common([fallback, ...routes.values()]),
    async *chat(request, signal) {
      const provider = pick(request.metadata?.hint)
      log('debug', 'provider selected', { provider: provider.name, by: name, hint: request.metadata?.hint })
      yield* provider.chat(ownModel(request), signal)
    },
  }
}
