/** Asks a server for the window of a model, in the ways of Ollama, llama.cpp, vLLM and LM Studio. */

import { isObject } from '../../../kit/json.ts'
import { ProviderFailure } from '../../../runtime/port.ts'
import { startDeadline } from '../deadline.ts'
import { baseUrlOf, keyHint, vendors } from '../dialects.ts'
import { openWire } from '../exchange.ts'
import type { ProviderDeps, WireConfig } from '../provider-settings.ts'

/** `isServer`: something answered. `isLoaded`: false when the window can be another one as soon as the server loads the model. */
export type AskedWindow = { readonly isServer: boolean; readonly tokens?: number; readonly isLoaded?: boolean }

export type AskOptions = {
  readonly name: string
  readonly config: WireConfig
  readonly model: string
  readonly deps: Pick<ProviderDeps, 'fetch' | 'sleep'>
  readonly signal: AbortSignal
}

/** All questions together may take this time, and each answer may have this many bytes (its framing eight times as much). */
const [limitS, limitBytes] = [1, 262_144]

/** Never rejects: a server that does not answer, or answers something else, is asked in vain. */
export async function askWindow({ name, config, model, deps, signal }: AskOptions): Promise<AskedWindow> {
  const base = baseUrlOf(config) ?? ''
  const root = base.replace(/\/v1$/, '')
  const deadline = startDeadline({ provider: name, signal, totalS: limitS, idleS: limitS, deps })
  const limits = { provider: name, deadline, maxBytes: limitBytes, fetch: deps.fetch, now: Date.now, keyHint: keyHint(config) }
  const headers = { 'content-type': 'application/json', ...(config.apiKey ? vendors[config.kind].headers(config.apiKey) : {}) }
  const heard = { isServer: false }

  async function answer(url: string, init: RequestInit = {}): Promise<unknown> {
    const wire = openWire({ ...limits, streaming: false })
    try {
      const document = await wire.ask(url, { ...init, headers })
      heard.isServer = true
      return document.type === 'document' ? document.value : undefined
    } catch (error) {
      if (error instanceof ProviderFailure && !['network', 'timeout', 'aborted'].includes(error.code)) heard.isServer = true
      return undefined
    } finally {
      wire.close()
    }
  }

  const [listed, shown, running, props, studio] = await Promise.all([
    answer(`${base}/models`),
    answer(`${root}/api/show`, { method: 'POST', body: JSON.stringify({ model }) }),
    answer(`${root}/api/ps`),
    answer(`${root}/props`),
    answer(`${root}/api/v0/models`),
  ])
  deadline.end()
  const found = [ofOllama(shown, running, model), ofLlamaCpp(props), ofVllm(listed, model), ofLmStudio(studio, model)]
  const [smallest] = found.flatMap((each) => each ?? []).toSorted((a, b) => a.tokens - b.tokens)
  return { ...heard, ...smallest }
}

type Found = { readonly tokens: number; readonly isLoaded: boolean }

/** What Ollama and LM Studio load a model with when nothing is set; Ollama takes more on a machine with more than 24 GB of video memory. */
const usualLoad = 4096

/** A loaded model has the window it was loaded with. Ollama cuts what is longer without a word. */
function ofOllama(shown: unknown, running: unknown, model: string): Found | undefined {
  const names = [model, `${model}:latest`]
  const loaded = countIn(
    itemsOf(running, 'models').find(({ name, model: id }) => names.includes(String(name)) || names.includes(String(id)))?.context_length,
  )
  if (loaded !== undefined) return { tokens: loaded, isLoaded: true }
  if (!isObject(shown) || !isObject(shown.model_info)) return undefined
  const own = countIn(Object.entries(shown.model_info).find(([key]) => key.endsWith('.context_length'))?.[1]) ?? Number.POSITIVE_INFINITY
  const set = countIn(/^\s*num_ctx\s+(\d+)/m.exec(String(shown.parameters))?.[1])
  if (set !== undefined) return { tokens: Math.min(own, set), isLoaded: true }
  const isElsewhere = typeof shown.remote_host === 'string' && own !== Number.POSITIVE_INFINITY
  return isElsewhere ? { tokens: own, isLoaded: true } : { tokens: Math.min(own, usualLoad), isLoaded: false }
}

function ofLlamaCpp(props: unknown): Found | undefined {
  const settings = isObject(props) ? props.default_generation_settings : undefined
  return loadedWith(isObject(settings) ? settings.n_ctx : undefined)
}

/** Other servers than vLLM name it too, each in its own way. */
function ofVllm(listed: unknown, model: string): Found | undefined {
  const models = itemsOf(listed, 'data')
  const found = models.find(({ id }) => id === model) ?? (models.length === 1 ? models[0] : undefined)
  return loadedWith(found?.max_model_len ?? found?.context_length ?? found?.context_window)
}

function ofLmStudio(studio: unknown, model: string): Found | undefined {
  const found = itemsOf(studio, 'data').find(({ id }) => id === model)
  const most = countIn(found?.max_context_length)
  if (found?.state === 'not-loaded' && most !== undefined) return { tokens: Math.min(most, usualLoad), isLoaded: false }
  return loadedWith(found?.loaded_context_length ?? most)
}

function loadedWith(value: unknown): Found | undefined {
  const tokens = countIn(value)
  return tokens === undefined ? undefined : { tokens, isLoaded: true }
}

function itemsOf(reply: unknown, member: string): readonly { readonly [key: string]: unknown }[] {
  const list = isObject(reply) ? reply[member] : undefined
  return Array.isArray(list) ? list.filter(isObject) : []
}

/** A window is at least as long as the configuration allows. */
function countIn(value: unknown): number | undefined {
  const count = Number(value)
  return Number.isInteger(count) && count >= 1024 && count <= 10_000_000 ? count : undefined
}
