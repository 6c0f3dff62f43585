/** Connects the channels of plugins: their processes bring messages in and take answers out, and nobody but the lists says who may talk. */

import type { Setup } from '../../host/api.ts'
import { openPluginService, type PluginService } from '../../host/toolset/guests/plugins/plugin-service.ts'
import { sleep } from '../../kit/abort.ts'
import { isObject, type JsonObject } from '../../kit/json.ts'
import { cut, visible } from '../../kit/text.ts'
import type { Channel, ChannelHost } from '../inbox/channel-api.ts'
import { createDelivery, type Delivery } from '../outbox/delivery.ts'
import { assertSent, type SendOptions, type SendResult } from '../outbox/send-pieces.ts'

/** How often it is looked whether a process runs, and its files are those that were approved. */
const lookMs = 2_000
/** How long a process may take to send one answer. */
const sendMs = 30_000
/** The most messages of one plugin that may wait for an answer. */
const mostOpen = 200

export function openPluginChannel(setup: Setup, names: readonly string[]): Channel {
  const services = new Map<string, PluginService>()
  /** Holds why a process does not run, in the name of its plugin; empty: it runs. */
  const reasons = new Map<string, string>()

  async function send(address: string, text: string, { replyTo, key }: SendOptions = {}): Promise<SendResult> {
    const at = address.indexOf('/')
    const service = services.get(address.slice(0, at))
    if (service === undefined) return { ok: false, message: `no plugin of [channels.plugins] has the address ${visible(address)}` }
    const asked = { address: address.slice(at + 1), text, ...(key ? { key } : {}), ...(replyTo ? { reply_to: replyTo } : {}) }
    const sent = await service.ask('send', asked, AbortSignal.timeout(sendMs))
    if (!('value' in sent)) return { ok: false, message: 'why' in sent ? sent.why : sent.refused }
    const refusal = isObject(sent.value) && typeof sent.value.error === 'string' ? sent.value.error : undefined
    return refusal === undefined ? { ok: true } : { ok: false, message: cut(visible(refusal), 300), isFinal: sent.code === 404 }
  }

  /** Keeps one process running until the signal aborts. */
  async function run(name: string, service: PluginService, { setup: { log }, trouble }: ChannelHost, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const why = (await service.keep()) ?? ''
      if (reasons.get(name) !== why && !signal.aborted) {
        reasons.set(name, why)
        if (why === '') log('info', 'channel started', { channel: 'plugins', plugin: name })
        else log('warn', 'channel of a plugin does not run', { plugin: name, why })
        const all = [...reasons].flatMap(([each, reason]) => (reason === '' ? [] : [`${each}: ${reason}`]))
        trouble(all.join('; ') || undefined)
      }
      await sleep(lookMs, signal)
    }
  }

  return {
    name: 'plugins',
    async start(host, signal) {
      const delivery = createDelivery({ channel: 'plugins', store: host.channelStore, send, sleep, log: setup.log, signal })
      for (const name of names) {
        const onMessage = receiverOf(name, host, delivery)
        services.set(name, openPluginService({ setup, name, capability: 'channel', closed: signal, onMessage }))
      }
      delivery.resume()
      await Promise.all([...services].map(([name, service]) => run(name, service, host, signal)))
    },
    async send(address, text) {
      assertSent(await send(address, text))
    },
    supportsDraftUpdates: () => false,
  }
}

/** Returns what hands the messages of one plugin to the host. Their people and addresses bear its name, so that it speaks for no others. */
function receiverOf(name: string, host: ChannelHost, delivery: Delivery) {
  const state = { open: 0, full: false }
  return ({ address, person, text, id }: JsonObject): string | undefined => {
    if (!isName(address) || !isName(person)) return '"address" and "person" are texts of 1 to 200 characters, without control characters'
    if (typeof text !== 'string') return '"text" is a text'
    if (id !== undefined && !isName(id)) return '"id" is a text of 1 to 200 characters'
    const isFull = state.open >= mostOpen
    if (isFull && !state.full) host.setup.log('warn', 'message ignored', { from: name, why: `${mostOpen} messages wait for an answer` })
    state.full = isFull
    if (isFull) return undefined
    const place = `${name}/${address}`
    state.open += 1
    host.receive({
      ...{ channel: place, text, from: 'plugins', conversation: `plugins ${place}`, person: `${name}/${person}` },
      settled() {
        state.open -= 1
      },
      answer: (words, about) => delivery.deliver({ address: place, text: words, ...(id === undefined ? {} : { replyTo: id }), ...about }),
    })
    return undefined
  }
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && /^\P{C}{1,200}$/u.test(value)
}
