/** Creates providers from their tables in the configuration, with key, fetch and clock. */

import { isWireProvider, type ProviderConfig, providerNamed, reachableProviders, type WireProvider } from '../../config/config.ts'
import { homePaths } from '../../config/paths.ts'
import { after, sleep } from '../../kit/abort.ts'
import { errorText } from '../../kit/errors.ts'
import { agentPaths } from '../../memory/agent-files/agent-paths.ts'
import { createProvider } from '../../providers/create-provider.ts'
import type { AskBrain } from '../../providers/provider-kind.ts'
import { createLane, type Lane } from '../../providers/wire/lane.ts'
import type { Fetch } from '../../providers/wire/provider-settings.ts'
import { type Provider, ProviderFailure } from '../../runtime/port.ts'
import { createProviderFetch, preconnectTo } from '../../workspace/net/provider-fetch.ts'
import { factsFileOf, factsOf, hasPrices, withFacts } from '../access/cost/model-facts.ts'
import type { Environment, Setup } from '../api.ts'
import { FailureError } from '../failure.ts'
import { missingKey, modelOf, notOffline } from './answering-provider.ts'

/** @throws FailureError `provider` when there is no provider of that name, its key is not set, or its fixture cannot be read */
export async function providerFor(setup: Connected, name: string, shared: SharedProviders = createSharedProviders()): Promise<Provider> {
  const unable = notOffline(setup, name) ?? missingKey(setup, name)
  if (unable) throw new FailureError('provider', `${unable}`)
  try {
    return await connect({ ...(await withFoundModels(setup, name)), shared }, name, new Map())
  } catch (error) {
    throw error instanceof ProviderFailure ? new FailureError('provider', `${error.message}`) : error
  }
}

/** Fills in the models that only their server knows, because nobody named one. @throws FailureError `provider` when there is none */
export async function withFoundModels<S extends Connected>(
  setup: S,
  name = setup.config.defaultProvider,
): Promise<S & { readonly found?: string }> {
  const isOpen = (each: ProviderConfig) => isWireProvider(each) && modelOf(setup.config, each) === ''
  if (!reachableProviders(setup.config, name).some(isOpen)) return setup
  return (await finder()).fillModels(setup, name)
}

const finder = () => import('./found-models.ts')

/** Opens a connection to the configured provider's server before the first request. */
export function preconnect({ config, context }: Pick<Setup, 'config' | 'context'>): void {
  const found = providerNamed(config, config.defaultProvider)
  if (found !== undefined && isWireProvider(found) && found.baseUrl) preconnectTo(found.baseUrl, context.env)
}

/** Holds one provider per name, however often the wrappers refer to it. */
type ProvidersByName = Map<string, Promise<Provider>>

function once<T>(made: Map<string, T>, key: string, make: () => T): T {
  const one = made.get(key) ?? make()
  made.set(key, one)
  return one
}

type Connected = Pick<Setup, 'config' | 'log' | 'context'> & Partial<Setup>
type Connecting = Connected & { readonly shared: SharedProviders }

async function connect(setup: Connecting, name: string, made: ProvidersByName): Promise<Provider> {
  const found = providerNamed(setup.config, name)
  if (!found) throw new ProviderFailure('bad_request', `no provider "${name}" in [providers.models]`)
  const wired = isWireProvider(found) ? found : undefined
  const { settings, longestAnswer, sees } = wired ? await informed(setup, wired) : { settings: found }
  return createProvider(settings, {
    longestAnswer,
    sees,
    fetch:
      found.kind === 'plugin'
        ? await setup.shared.plugin(setup, found.plugin)
        : wired?.baseUrl
          ? createProviderFetch({ baseUrl: wired.baseUrl })
          : vendorFetch,
    log: setup.log,
    sleep: sleep,
    maxResponseBytes: setup.config.limits.maxResponseBytes,
    secret: (variable) => keyIn(variable, setup.context.env[variable]),
    random: Math.random,
    now: Date.now,
    baseDir: setup.context.cwd,
    count: () => countStub(setup),
    brain: setup.shared.brain,
    lane: wired && setup.shared.lane(keyOf(wired, setup.context.env)),
    withModels: async (refusal) => (wired && wired.kind !== 'plugin' ? (await finder()).withModels(refusal, setup, wired) : refusal),
    provider: (other) => once(made, other, () => connect(setup, other, made)),
  })
}

/** @throws ProviderFailure `auth` for a key that no header can carry, such as one with a line end or a character without a width */
function keyIn(variable: string, key: string | undefined): string | undefined {
  const odd = /[^ -~]/u.exec(key ?? '')
  if (odd === null) return key || undefined
  const what = `U+${odd[0].codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')} at character ${odd.index + 1}`
  throw new ProviderFailure(
    'auth',
    `the key in ${variable} holds ${what}, which no key has; copy the key again, without line ends and hidden characters`,
  )
}

async function countStub({ config, context }: Pick<Setup, 'config' | 'context'>): Promise<number> {
  const { nextNumber } = await import('../../memory/agent-files/disk.ts')
  return nextNumber(agentPaths(`${homePaths(context.home).agents}/${config.defaultAgent ?? 'default'}`).stub)
}

/** The parts of providers that all conversations of a home share, whatever their settings. */
export type SharedProviders = ReturnType<typeof createSharedProviders>

export function createSharedProviders() {
  const lanes = new Map<string, Lane>()
  const brains = new Map<string, Promise<AskBrain>>()
  const plugins = new Map<string, Promise<Fetch>>()
  const closed = new AbortController()
  return {
    /** Returns the lane of one address with one key. */
    lane: (key: string): Lane => once(lanes, key, () => createLane({ now: () => performance.now(), after })),
    /** Returns the only reader of the FIFOs of one folder. */
    brain(folder: { readonly dir: string; readonly timeoutMs: number }): Promise<AskBrain> {
      const key = `${folder.timeoutMs} ${folder.dir}`
      const brain = once(brains, key, () => brainOf(folder))
      brain.catch(() => brains.delete(key))
      return brain
    },
    /** Returns what asks the processes of a plugin. */
    plugin: (setup: Connected, name: string): Promise<Fetch> =>
      once(plugins, `${name} ${setup.config.workspaceDir}`, async () =>
        (await import('../toolset/guests/plugins/plugin-model.ts')).createPluginFetch(setup, name, closed.signal),
      ),
    /** Ends the processes of plugins. */
    close: () => closed.abort(),
  }
}

function keyOf(found: WireProvider, env: Environment): string {
  const address = found.kind === 'plugin' ? found.plugin : found.baseUrl
  return JSON.stringify([found.kind, address ?? '', env[found.apiKeyEnv ?? ''] ?? ''])
}

/** Keeps the FIFOs open as long as the process runs, so that a late answer finds its reader. */
async function brainOf({ dir, timeoutMs }: { readonly dir: string; readonly timeoutMs: number }): Promise<AskBrain> {
  const { createExchange } = await import('../../service/fifo/exchange.ts')
  try {
    return createExchange({ requestPath: `${dir}/brain_in`, answerPath: `${dir}/brain_out`, timeoutMs }).ask
  } catch (error) {
    const why = errorText(error)
    throw new ProviderFailure('bad_request', `the FIFOs of "${dir}" cannot be used: ${why}; "braidclaw daemon" makes them`)
  }
}

/** Fills the rows that the settings leave open with what is known of the model that will be asked. */
async function informed({ config, context, log }: Connecting, found: WireProvider) {
  const model = modelOf(config, found)
  const known = await factsOf(found, model, await factsFileOf(context.home))
  if (config.limits.maxRunUsd !== undefined && !hasPrices(known)) log('warn', unpriced(found.name, model))
  const effort = known.reasons?.value === false ? undefined : found.effort
  if (effort !== found.effort)
    log('warn', `effort is not sent: ${model} does not reason; if it does, set reasons in models.toml (docs/cost.md)`)
  return { settings: { ...withFacts(found, known), effort }, longestAnswer: known.maxOutputTokens?.value, sees: known.sees?.value }
}

/** Warns about a limit that cannot be enforced, because it would look effective. */
function unpriced(name: string, model: string): string {
  return `limits.max_run_usd cannot hold: [providers.models.${name}] has no price_input and price_output, and the prices of ${model} are not known otherwise (docs/cost.md)`
}

/** Without a base_url the request goes to the vendor's own address; the fetch is pinned to that origin. */
function vendorFetch(url: string, init: RequestInit): Promise<Response> {
  return createProviderFetch({ baseUrl: new URL(url).origin })(url, init)
}
