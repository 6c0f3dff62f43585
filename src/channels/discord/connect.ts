/** Connects to Discord: it delivers messages from the configured channels and sends answers. The libraries are loaded here on first use. */

import { createQueue } from '../../kit/queue.ts'
import { createRedactor } from '../../security/redaction/redact.ts'
import type { Sent } from '../outbox/send-pieces.ts'
import { within } from '../outbox/within.ts'
import { type DiscordOptions, faultOf, gatewayRule, type Settled, settle } from './connection-options.ts'
import type { Outcome } from './gateway.ts'
import type { DiscordMessage } from './listen.ts'
import type { Outbox } from './outbox.ts'

export type Discord = Outbox & {
  readonly ok: true
  /** The user id of the bot itself. */
  readonly userId: string
  /** Messages in order, each once, for one reader; the sequence ends with the connection. Unread messages queue without limit. */
  readonly messages: AsyncIterable<DiscordMessage>
  /** `ok` after `close`; otherwise what ended the connection for good, and what to do. */
  readonly ended: Promise<Outcome>
  /** Ends everything at once; an unsent answer reports that it was not sent. Resolves when no socket and no timer is left. */
  close(): Promise<void>
}

export type NoDiscord = { readonly ok: false; readonly message: string }

/**
 * Resolves with the first READY, however long Discord is unreachable until then, or with a permanent failure. The token appears in no
 * message and in no log line.
 */
export async function connectDiscord(options: DiscordOptions): Promise<Discord | NoDiscord> {
  const settled = settle(options)
  const fault = faultOf(settled)
  return fault === undefined ? await connect(options, settled) : { ok: false, message: fault }
}

async function connect(options: DiscordOptions, settled: Settled): Promise<Discord | NoDiscord> {
  const { sleep = realSleep } = options
  const { channelIds, restApi, token } = settled
  const [{ stayConnected }, { createListener }, { createOutbox }, { createApi }] = await libraries()
  const { closing, signal } = endedBy(options.signal)
  const redact = redactorOf(token)
  const log: DiscordOptions['log'] = (level, event, fields) => options.log(level, event, redact(fields))
  const inbox = createQueue<DiscordMessage>(Number.POSITIVE_INFINITY)
  const ready = Promise.withResolvers<string>()
  const api = createApi({ api: restApi, token, fetch: options.fetch })
  const onDispatch = createListener({ channelIds, log, onReady: ready.resolve, onMessage: (message) => void inbox.push(message) })
  const gatewayInfo = () => within(signal, (own) => api().gateway.getBot({ signal: own }))
  const running = stayConnected({ ...settled, isGateway: gatewayRule(restApi), gatewayInfo, onDispatch, sleep, log, signal })
  const ended = running.then(redact).finally(() => {
    closing.abort()
    inbox.close()
  })
  const first = await Promise.race([ready.promise, ended])
  if (typeof first !== 'string') return first.ok ? { ok: false, message: 'closed before Discord was connected' } : first
  const outbox = restricted(createOutbox({ api, sleep, log, signal }), { channelIds, redact })
  const close = async () => {
    closing.abort()
    await ended
  }
  return { ok: true, userId: first, messages: inbox.items(), ended, close, ...outbox }
}

/** Loading takes 50 ms, which only Discord users pay. */
async function libraries() {
  return Promise.all([import('./gateway.ts'), import('./listen.ts'), import('./outbox.ts'), import('./rest.ts')])
}

function endedBy(signal: AbortSignal | undefined): { readonly closing: AbortController; readonly signal: AbortSignal } {
  const closing = new AbortController()
  return { closing, signal: signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal]) }
}

function redactorOf(token: string): <T>(value: T) => T {
  const redactor = createRedactor()
  redactor.register(token, 'discord')
  return redactor.value
}

type Limits = { readonly channelIds: readonly string[]; readonly redact: (sent: Sent) => Sent }

/** Checks the channel name, because it may come from a model or a pipe and becomes part of a URL. */
function restricted(outbox: Outbox, { channelIds, redact }: Limits): Outbox {
  return {
    async send(channel, text) {
      if (channelIds.includes(channel)) return redact(await outbox.send(channel, text))
      return { ok: false, message: `channel ${JSON.stringify(channel)} is not one of ${channelIds.join(', ')} (DISCORD_CHANNEL_ID)` }
    },
    typing: async (channel) => (channelIds.includes(channel) ? await outbox.typing(channel) : undefined),
  }
}

function realSleep(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  const stop = () => {
    clearTimeout(timer)
    reject(signal.reason)
  }
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  return promise.finally(() => signal.removeEventListener('abort', stop))
}
