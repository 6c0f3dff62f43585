/**
 * Asks the processes of a plugin as a server of chat completions is asked, so that a plugin that answers as a model has the same time limits,
 * retries, prices and checks.
 */

import { parseJson } from '../../../../kit/json.ts'
import { createQueue } from '../../../../kit/queue.ts'
import { fieldsOf } from '../../../../kit/wire.ts'
import type { Fetch } from '../../../../providers/wire/provider-settings.ts'
import { ProviderFailure } from '../../../../runtime/port.ts'
import type { Setup } from '../../../api.ts'
import { openPluginService, type PluginService } from './plugin-service.ts'

type Reply = Awaited<ReturnType<PluginService['ask']>>
type Fields = ReturnType<typeof fieldsOf>

/** Each call that is open at the same time has a process of its own. @throws ProviderFailure `bad_request` without a whole configuration */
export function createPluginFetch(setup: Partial<Setup>, plugin: string, closed: AbortSignal): Fetch {
  if (!isSetup(setup)) throw new ProviderFailure('bad_request', `plugin ${plugin} answers only with a configuration that is loaded whole`)
  const free: PluginService[] = []
  return async (_url, { body, signal }) => {
    const sent = String(body)
    const service = free.pop() ?? openPluginService({ setup, name: plugin, capability: 'provider', closed })
    const pieces = createQueue<string>(Number.POSITIVE_INFINITY)
    const texts = pieces.items()
    const reply = service.ask('chat', fieldsOf(parseJson(sent)), signal ?? closed, pieces.push).finally(() => {
      free.push(service)
      pieces.close()
    })
    const first = await texts.next()
    const refused = first.done ? refusalIn(await reply, plugin) : undefined
    if (refused) return Response.json({ error: { message: refused.message } }, { status: refused.status })

    /** Yields the texts that came before the result, and the result, as the events of a stream. */
    async function* events() {
      let shown = 0
      for (let text = first; !text.done; text = await texts.next()) {
        shown += text.value.length
        yield JSON.stringify({ choices: [{ delta: { content: text.value } }] })
      }
      yield JSON.stringify(lastEvent(await reply, plugin, sent.length, shown))
      yield '[DONE]'
    }
    return new Response(streamOf(events()), { headers: { 'content-type': 'text/event-stream' } })
  }
}

function isSetup(setup: Partial<Setup>): setup is Setup {
  return setup.redactor !== undefined
}

function streamOf(events: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(to) {
      const { done, value } = await events.next()
      if (done) to.close()
      else to.enqueue(Buffer.from(`data: ${value}\n\n`))
    },
  })
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

/** Makes an event of a whole completion or a refusal. @throws Error when it is neither */
function lastEvent(reply: Reply, plugin: string, sent: number, shown: number): Fields {
  const refused = refusalIn(reply, plugin)
  if (refused) return { error: { message: refused.message } }
  const { choices, usage, ...others } = fieldsOf('value' in reply ? reply.value : undefined)
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
