/** Asks the servers of providers which models they have, and chooses one where nobody named one. */

import { isWireProvider, reachableProviders, type WireProvider } from '../../config/config.ts'
import { sleep } from '../../kit/abort.ts'
import { nearest } from '../../kit/text.ts'
import { noTools } from '../../providers/http-provider.ts'
import { listModels, type Models, type ServerModel } from '../../providers/probe-provider.ts'
import { baseUrlOf } from '../../providers/wire/provider-settings.ts'
import { ProviderFailure } from '../../runtime/port.ts'
import { createProviderFetch } from '../../workspace/net/provider-fetch.ts'
import type { Setup } from '../api.ts'
import { FailureError } from '../failure.ts'
import { modelOf } from './answering-provider.ts'

type Connected = Pick<Setup, 'config' | 'log' | 'context'>
type Around = Pick<Setup, 'log'> & { readonly context: Pick<Setup['context'], 'env'> }
type Server = Pick<WireProvider, 'name' | 'kind' | 'baseUrl' | 'apiKeyEnv'> & { readonly totalTimeoutS?: number }

/** Asks the server of a provider for its models. */
export function modelsOf({ log, context: { env } }: Around, { name, ...server }: Server): Promise<Models> {
  const config = { ...server, model: '', apiKey: env[server.apiKeyEnv ?? ''] }
  const fetch = createProviderFetch({ baseUrl: baseUrlOf(config) ?? '' })
  return listModels(name, config, { fetch, log, sleep: sleep, random: Math.random, now: Date.now })
}

/** Returns the models that can chat, those first that a person most likely wants: loaded, the usual one, the newest. */
export function ranked(models: readonly ServerModel[], usual: string): readonly ServerModel[] {
  const rank = ({ id, isLoaded, created = 0 }: ServerModel) => (isLoaded ? 2e15 : id === usual ? 1e15 : created)
  return models.filter(({ isChat }) => isChat).sort((a, b) => rank(b) - rank(a) || (a.id < b.id ? -1 : 1))
}

/** Returns the names of the models that can chat, in their order; empty when the server does not say. */
export async function idsOf(around: Around, server: Server): Promise<readonly string[]> {
  const found = await modelsOf(around, { ...server, totalTimeoutS: 5 })
  return found.ok ? found.models.flatMap(({ id, isChat }) => (isChat ? [id] : [])).sort() : []
}

/** The words of servers that do not know the model. */
const noModel =
  /models?\b.{0,120}(?:not (?:found|exist|available|loaded|supported)|unknown|invalid|no such)|(?:unknown|invalid|no such|not a valid) models?\b|no models? loaded/i

function namesNoModel({ code, message, detail: { status } }: ProviderFailure): boolean {
  const isOther = noTools.test(message) || /; effort = "/.test(message)
  return code === 'bad_request' && !isOther && (status === 404 ? /model/i : noModel).test(message)
}

/** Adds to the refusal of a model those that the server has, the most similar first; returns another refusal as it is. */
export async function withModels(refusal: ProviderFailure, around: Around, server: Server): Promise<ProviderFailure> {
  if (!namesNoModel(refusal)) return refusal
  const [{ code, message, detail }, { name }] = [refusal, server]
  const ids = await idsOf(around, server)
  const near = nearest(detail.model ?? '', ids)
  const [first, ...rest] = new Set([...(near === undefined ? [] : [near]), ...ids])
  if (first === undefined) return new ProviderFailure(code, message, detail)
  const more = rest.length > 7 ? ` and ${rest.length - 7} more (braidclaw provider models ${name})` : ''
  const has = `the server has ${[first, ...rest.slice(0, 7)].join(', ')}${more}; to choose one: -m ${name}/${first}`
  return new ProviderFailure(code, `${message}${near ? `; did you mean "${near}"?` : ''}; ${has}`, detail)
}

/**
 * Returns the setup with a model for each provider that has none: the one that is loaded, else the first that can chat.
 * @throws FailureError `provider` when the server of that provider does not answer, or has no such model
 */
export async function fillModels<S extends Connected>(setup: S, name: string): Promise<S & { readonly found?: string }> {
  const { config } = setup
  const open = reachableProviders(config, name).flatMap((each) => (isWireProvider(each) && modelOf(config, each) === '' ? [each] : []))
  // One that does not answer is no reason to ask none of a chain.
  const orNone = (error: unknown) => (open[0]?.name === name ? Promise.reject(error) : [])
  const found = (await Promise.all(open.map((each) => choose(setup, each).then((model) => [{ each, ...model }], orNone)))).flat()
  const [first] = found
  if (!first) return setup
  const models = Object.fromEntries(found.map(({ each, id }) => [each.name, { ...each, model: id }]))
  const defaultModel = config.defaultModel || (name === config.defaultProvider ? first.id : '')
  const says = found.map(({ each, id, why }) => `${each.name}/${id} is ${why}`).join('; ')
  return { ...setup, config: { ...config, defaultModel, providers: { models: { ...config.providers.models, ...models } } }, found: says }
}

/** Returns the model that answers when nobody names one, and why it is that one. @throws FailureError `provider` when there is none */
export async function choose(around: Around, server: Server): Promise<{ readonly id: string; readonly why: string }> {
  const { name, baseUrl } = server
  const asked = await modelsOf(around, server)
  const other = `name one: -m ${name}/MODEL`
  const no = (why: string, advice: string) =>
    new FailureError('provider', `no model is named, and the server of "${name}" ${why}; ${advice}`)
  if (!asked.ok) throw no(`does not say what it has: ${asked.failure.message}`, `start the server, or ${other}`)
  const chat = asked.models.filter(({ isChat }) => isChat)
  const loaded = chat.filter(({ isLoaded }) => isLoaded)
  const [first] = loaded.length === 1 ? loaded : chat
  const pull: { readonly [name: string]: string } = { ollama: 'get one: ollama pull qwen3:8b', lmstudio: 'get one: lms get qwen3-8b' }
  if (!first) throw no(`at ${baseUrl} has none that can answer`, pull[name] ?? other)
  const which = loaded.length === 1 ? 'loaded there' : 'the first there that can answer'
  return { id: first.id, why: chat.length === 1 ? 'the only model there' : `${which}, of ${chat.length} models` }
}
