/** Provides two providers that ask others: a fallback chain, in order until one answers, and a router, by a hint. */

import type { Rows } from '../kit/settings.ts'
import type { FailureCode } from '../runtime/event.ts'
import { type ChatRequest, type Log, type Provider, type ProviderCapabilities, ProviderFailure } from '../runtime/port.ts'
import type { ProviderKind } from './provider-kind.ts'

/**
 * Failures after which another provider may succeed. Not included: a request that is invalid, too long or refused for its content, and our
 * own cancel.
 */
const fallbackCodes: ReadonlySet<FailureCode> = new Set(['network', 'auth', 'timeout', 'server', 'rate_limit', 'bad_response', 'empty'])

const settings = {
  providers: { type: 'words', form: 'provider', filled: true, required: true, about: 'The providers to try, in this order.' },
} as const satisfies Rows

/** Asks other providers in order until one answers. */
export const reliable = {
  kind: 'reliable',
  settings,
  budget: 'kept',
  async create({ name, settings, deps: { provider, log } }) {
    return createReliable({ name, providers: await Promise.all(settings.providers.map(provider)), log })
  },
} as const satisfies ProviderKind<typeof settings>

type ReliableOptions = { readonly name: string; readonly providers: readonly Provider[]; readonly log: Log }

/** Each provider uses its own model. After the first piece of an answer, a failure ends the call without a fallback. */
export function createReliable(options: ReliableOptions): Provider {
  return {
    name: options.name,
    capabilities: () => common(options.providers),
    async *chat(request, signal) {
      const failures: ProviderFailure[] = []
      for (const [index, provider] of options.providers.entries()) {
        let shown = false
        try {
          for await (const chunk of provider.chat(ownModel(request), signal)) {
            shown = true
            yield chunk
          }
          return
        } catch (error) {
          if (!(error instanceof ProviderFailure) || shown || signal.aborted || !fallbackCodes.has(error.code)) throw error
          failures.push(error)
          note({ options, index, failure: error })
        }
      }
      throw allFailed(options, failures)
    },
  }
}

/** @returns the capabilities that all of the providers have; one that takes no pictures leaves them out itself */
function common(providers: readonly Provider[]): ProviderCapabilities {
  const all = providers.map((provider) => provider.capabilities())
  return {
    streaming: all.every((each) => each.streaming),
    tools: all.every((each) => each.tools),
    thinking: all.every((each) => each.thinking),
    contextTokens: Math.min(...all.map((each) => each.contextTokens)),
    ...(all.some((each) => each.pictures) ? { pictures: true } : {}),
  }
}

/** Clears the model, because its name means nothing to another provider. */
function ownModel(request: ChatRequest): ChatRequest {
  return { ...request, model: '' }
}

function note(at: { options: ReliableOptions; index: number; failure: ProviderFailure }): void {
  const { options, index, failure } = at
  const from = options.providers[index]?.name
  const to = options.providers[index + 1]?.name
  if (to !== undefined) options.log('warn', 'provider fallback', { from, to, code: failure.code, message: failure.message })
}

function allFailed(options: ReliableOptions, failures: readonly ProviderFailure[]): ProviderFailure {
  const last = failures.at(-1)
  const each = failures.map((failure, index) => `${options.providers[index]?.name} (${failure.code}): ${failure.message}`)
  const message = `provider "${options.name}": all ${failures.length} failed: ${each.join('; ')}`
  return new ProviderFailure(last?.code ?? 'unknown', message, { ...last?.detail, provider: options.name })
}

const routerRows = {
  routes: { type: 'map', required: true, about: 'Which provider answers which hint: { cheap = "local", hard = "openai" }.' },
  default: {
    type: 'text',
    form: 'provider',
    required: true,
    about: 'The provider for a request without a hint, or with one that has no route.',
  },
} as const satisfies Rows

/** Picks another provider by the request's `metadata.hint`. */
export const router = {
  kind: 'router',
  settings: routerRows,
  budget: 'kept',
  async create({ name, settings, deps: { provider, log } }) {
    const routes = new Map<string, Provider>()
    for (const [hint, to] of Object.entries(settings.routes)) routes.set(hint, await provider(to))
    return createRouter({ name, fallback: await provider(settings.default), routes, log })
  },
} as const satisfies ProviderKind<typeof routerRows>

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
