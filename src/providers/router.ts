/** A provider that picks another by the request's `metadata.hint`. */

import type { Log, Provider } from '../runtime/port.ts'
import { common, ownModel } from './reliable.ts'

type Options = {
  readonly name: string
  readonly fallback: Provider
  readonly routes: ReadonlyMap<string, Provider>
  readonly log: Log
}

export function createRouter(options: Options): Provider {
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
