/** Asks a server for the window of a model, in the ways of Ollama, llama.cpp, vLLM and LM Studio. */

import { isObject } from '../../../kit/json.ts'
import { ProviderFailure } from '../../../runtime/port.ts'
import { startDeadline } from '../deadline.ts'
import { openWire } from '../exchange.ts'

/** `isServer`: something answered. `isLoaded`: false when the window can be another one as soon as the server loads the model. */
export type AskedWindow = { readonly isServer: boolean; readonly tokens?: number; readonly isLoaded?: boolean }

/** `base` has no trailing slash; `headers` carry the key. */
export type AskOptions = {
  readonly name: string
  readonly base: string
  readonly headers: { readonly [name: string]: string }
  readonly model: string
  readonly deps: Parameters<typeof startDeadline>[0]['deps'] & Pick<Parameters<typeof openWire>[0], 'fetch'>
  readonly signal: AbortSignal
}

/** All questions together may take this time, and each answer may have this many bytes (its framing eight times as much). */
const [limitS, maxBytes] = [1, 262_144]

/** Never rejects: without a usable answer of the server, the result has no `tokens`. */
export async function askWindow({ name, base, headers, model, deps, signal }: AskOptions): Promise<AskedWindow> {
  const root = base.replace(/\/v1$/, '')
  const deadline = startDeadline({ provider: name, signal, totalS: limitS, idleS: limitS, deps })
  const server = { isServer: false }

  async function answer(url: string, init: RequestInit = {}): Promise<unknown> {
    const wire = openWire({ provider: name, deadline, maxBytes, fetch: deps.fetch, now: Date.now, streaming: false, keyHint: '' })
    try {
      const document = await wire.ask(url, { ...init, headers: { 'content-type': 'application/json', ...headers } })
      server.isServer = true
      return document.type === 'document' ? document.value : undefined
    } catch (error) {
      server.isServer ||= error instanceof ProviderFailure && !['network', 'timeout', 'aborted'].includes(error.code)
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
  const found = [
    ofOllama(shown, itemOf(running, model, false)),
    ofLlamaCpp(props),
    ofVllm(itemOf(listed, model)),
    ofLmStudio(itemOf(studio, model)),
  ]
  const [smallest] = found.filter(({ tokens }) => tokens !== undefined).toSorted((a, b) => Number(a.tokens) - Number(b.tokens))
  return { ...server, ...smallest }
}

type ServerWindow = { readonly tokens?: number | undefined; readonly isLoaded: boolean }
type Item = { readonly [key: string]: unknown }

/** Ollama and LM Studio load a model with this when nothing is set; Ollama takes more on a machine with 24 GB of video memory. */
const usualLoad = 4096

/** A loaded model has the window that it was loaded with. Ollama silently cuts a longer request. */
function ofOllama(shown: unknown, running: Item): ServerWindow {
  const { model_info: info, parameters, remote_host: isElsewhere } = isObject(shown) ? shown : {}
  const own = countIn(isObject(info) && Object.entries(info).find(([key]) => key.endsWith('.context_length'))?.[1])
  const set =
    countIn(running.context_length) ?? countIn(/^\s*num_ctx\s+(\d+)/m.exec(String(parameters))?.[1]) ?? (isElsewhere ? own : undefined)
  if (!isObject(info) || set !== undefined) return { tokens: set && Math.min(set, own ?? set), isLoaded: true }
  return { tokens: Math.min(own ?? usualLoad, usualLoad), isLoaded: false }
}

function ofLlamaCpp(props: unknown): ServerWindow {
  const settings = isObject(props) ? props.default_generation_settings : undefined
  return { tokens: countIn(isObject(settings) && settings.n_ctx), isLoaded: true }
}

/** Other servers than vLLM name it too, each in its own way. */
function ofVllm({ max_model_len: vllm, context_length: openRouter, context_window: groq }: Item): ServerWindow {
  return { tokens: countIn(vllm ?? openRouter ?? groq), isLoaded: true }
}

function ofLmStudio({ state, loaded_context_length: loaded, max_context_length: longest }: Item): ServerWindow {
  const [most, isLoaded] = [countIn(longest), state !== 'not-loaded']
  return { tokens: isLoaded ? (countIn(loaded) ?? most) : most && Math.min(most, usualLoad), isLoaded }
}

/** Returns the entry of the model, or the `only` one: a server with one model answers for it under any name. */
function itemOf(reply: unknown, model: string, only = true): Item {
  const list = isObject(reply) ? (reply.data ?? reply.models) : undefined
  const items = Array.isArray(list) ? list.filter(isObject) : []
  const isIt = (name: unknown) => name === model || name === `${model}:latest`
  return items.find((item) => isIt(item.id) || isIt(item.name)) ?? (only && items.length === 1 ? items[0] : undefined) ?? {}
}

/** A window is within the bounds of the configuration. */
function countIn(value: unknown): number | undefined {
  const count = Number(value)
  return Number.isInteger(count) && count >= 1024 && count <= 10_000_000 ? count : undefined
}
