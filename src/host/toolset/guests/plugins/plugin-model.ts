/**
 * Asks the processes of a plugin as a server of chat completions is asked, so that a plugin that answers as a model has the same time limits,
 * retries, prices and checks.
 */

import { isObject, parseJson } from '../../../../kit/json.ts'
import type { Fetch } from '../../../../providers/wire/provider-settings.ts'
import { ProviderFailure } from '../../../../runtime/port.ts'
import type { Setup } from '../../../api.ts'
import { openPluginService, type PluginService } from './plugin-service.ts'

type Reply = Awaited<ReturnType<PluginService['ask']>>
type Fields = { readonly [name: string]: unknown }

/** Each call that is open at the same time has a process of its own. */
export function createPluginFetch(setup: Setup, plugin: string, closed: AbortSignal): Fetch {
  const free: PluginService[] = []
  return async (_url, { body, signal }) => {
    const sent = String(body)
    const service = free.pop() ?? openPluginService({ setup, name: plugin, capability: 'provider', closed })
    const events = createEvents()
    const asked = service.ask('chat', fieldsOf(parseJson(sent)), signal ?? closed, events.piece)
    const reply = asked.finally(() => free.push(service))
    const refused = (await Promise.race([events.begun, reply])) === 'begun' ? undefined : refusalIn(await reply, plugin)
    if (refused) return Response.json({ error: { message: refused.message } }, { status: refused.status })
    void reply.then((last) => events.end(last, plugin, sent.length))
    return new Response(events.stream, { headers: { 'content-type': 'text/event-stream' } })
  }
}

/** Writes the texts that come before the result, and the result, as the events of a stream. */
function createEvents() {
  const { promise: begun, resolve } = Promise.withResolvers<'begun'>()
  const state: { to?: ReadableStreamDefaultController<Uint8Array>; bytes: number } = { bytes: 0 }
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => void Object.assign(state, { to: controller }),
    cancel: () => void delete state.to,
  })
  const send = (event: string) => state.to?.enqueue(Buffer.from(`data: ${event}\n\n`))
  return {
    stream,
    begun,
    piece(text: string): void {
      state.bytes += text.length
      send(JSON.stringify({ choices: [{ delta: { content: text } }] }))
      resolve('begun')
    },
    end(reply: Reply, plugin: string, sent: number): void {
      try {
        const refused = refusalIn(reply, plugin)
        const last = refused
          ? { error: { message: refused.message } }
          : lastEvent('value' in reply ? reply.value : undefined, sent, state.bytes)
        for (const event of [JSON.stringify(last), '[DONE]']) send(event)
        state.to?.close()
      } catch (error) {
        state.to?.error(error)
      }
    },
  }
}

/**
 * A plugin refuses with the status that a server would have; another code is an error of the server. @throws ProviderFailure when the plugin
 * may not run, Error when its process failed
 */
function refusalIn(reply: Reply, plugin: string): { readonly message: string; readonly status: number } | undefined {
  if ('refused' in reply) throw new ProviderFailure('bad_request', reply.refused, { provider: plugin, unsent: true })
  if ('why' in reply) throw new Error(`plugin ${plugin}: ${reply.why}`)
  const { error } = fieldsOf(reply.value)
  const { code = 0 } = reply
  return typeof error === 'string' ? { message: error, status: code >= 400 && code < 600 ? Math.floor(code) : 502 } : undefined
}

/** Makes an event of a whole completion. @throws Error when it is none */
function lastEvent(completion: unknown, sent: number, shown: number): Fields {
  const { choices, usage, ...others } = fieldsOf(completion)
  if (!Array.isArray(choices)) throw new Error('the plugin answered without "choices"')
  const { message, finish_reason } = fieldsOf(choices[0])
  const { tool_calls, ...words } = fieldsOf(message)
  const calls = Array.isArray(tool_calls) ? tool_calls.map((call, index) => ({ index, ...fieldsOf(call) })) : undefined
  const got = shown + JSON.stringify(words).length
  return { ...others, choices: [{ delta: { ...words, tool_calls: calls }, finish_reason }], usage: countedIn(fieldsOf(usage), sent, got) }
}

/** Leaves out counts that cannot be true, so that they are estimated: a token has at most 16 bytes, and a quarter at least. */
function countedIn(usage: Fields, sent: number, got: number): Fields | undefined {
  const isTrue = (count: unknown, least: number, most: number) => typeof count === 'number' && count >= least && count <= most
  return isTrue(usage.prompt_tokens, sent / 16, sent * 4) && isTrue(usage.completion_tokens, got / 32, 1_000_000) ? usage : undefined
}

function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {}
}
