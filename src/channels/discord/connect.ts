/** Connects to Discord: it delivers messages from the configured channels and sends answers. The libraries are loaded here on first use. */

import { sleep as sleepUntil } from '../../kit/abort.ts'
import { createQueue } from '../../kit/queue.ts'
import type { Log } from '../../runtime/port.ts'
import { createRedactor } from '../../security/redaction/redact.ts'
import { type SendResult, within } from '../outbox/send-pieces.ts'
import type { DiscordMessage, GatewayEnd } from './gateway.ts'
import type { DiscordFetch, Outbox } from './rest.ts'

export type Discord = Outbox & {
  readonly ok: true
  /** The user id of the bot itself. */
  readonly userId: string
  /** Messages in order, each once, for one reader; the sequence ends with the connection. Unread messages queue without limit. */
  readonly messages: AsyncIterable<DiscordMessage>
  /** `ok` after `close`; otherwise what ended the connection for good, and what to do. */
  readonly ended: Promise<GatewayEnd>
  /** Ends everything at once; an unsent answer reports that it was not sent. Resolves when no socket and no timer is left. */
  close(): Promise<void>
}

export type NoDiscord = { readonly ok: false; readonly message: string }

/**
 * Resolves with the first READY, however long Discord is unreachable until then, or with a permanent failure. The token appears in no
 * message and in no log line.
 */
export async function connectDiscord(options: DiscordOptions): Promise<Discord | NoDiscord> {
  const settings = withDefaults(options)
  const fault = faultOf(settings)
  if (fault !== undefined) return { ok: false, message: fault }
  const { sleep = sleepUntil, trouble: report = () => {} } = options
  const trouble = (why?: string) => report(redact(why))
  const { channelIds, restApi, token } = settings
  // Loading takes 50 ms, which only Discord users pay.
  const [{ stayConnected, createListener }, { createOutbox, createApi }] = await Promise.all([import('./gateway.ts'), import('./rest.ts')])
  const closing = new AbortController()
  const signal = options.signal ? AbortSignal.any([options.signal, closing.signal]) : closing.signal
  const redactor = createRedactor()
  redactor.register(token, 'discord')
  const redact = redactor.value
  const log: DiscordOptions['log'] = (level, event, fields) => options.log(level, event, redact(fields))
  const inbox = createQueue<DiscordMessage>(Number.POSITIVE_INFINITY)
  const ready = Promise.withResolvers<string>()
  const api = createApi({ api: restApi, token, fetch: options.fetch })
  const onDispatch = createListener({
    channelIds,
    log,
    onReady: ready.resolve,
    onConnected: trouble,
    onMessage: (message) => void inbox.push(message),
  })
  const gatewayInfo = () => within(signal, (own) => api().gateway.getBot({ signal: own }))
  const running = stayConnected({ ...settings, isGateway: gatewayRule(restApi), gatewayInfo, onDispatch, sleep, log, signal, trouble })
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

type Limits = { readonly channelIds: readonly string[]; readonly redact: (sent: SendResult) => SendResult }

/** Checks the channel name, because it may come from a model or a pipe and becomes part of a URL. */
function restricted(outbox: Outbox, { channelIds, redact }: Limits): Outbox {
  return {
    async send(channel, text, options) {
      if (channelIds.includes(channel)) return redact(await outbox.send(channel, text, options))
      return {
        ok: false,
        isFinal: true,
        message: `channel ${JSON.stringify(channel)} is not one of ${channelIds.join(', ')} (DISCORD_CHANNEL_ID)`,
      }
    },
    typing: async (channel) => (channelIds.includes(channel) ? await outbox.typing(channel) : undefined),
  }
}

/** The origin that the guarded fetch must allow, unless `restApi` names another one. */
export const DISCORD_API = 'https://discord.com/api'

/**
 * GUILD_MESSAGES (512) and MESSAGE_CONTENT (32768). With the first alone Discord delivers messages without text, except those that mention
 * the bot; the second must be enabled for the bot in Discord's developer portal.
 */
export const DISCORD_INTENTS = 512 | 32_768

export type DiscordOptions = {
  readonly token: string
  /** The channels to read and write; the bot ignores all others and sends nothing there. */
  readonly channelIds: string | readonly string[]
  /** A guarded fetch that allows the origin of `restApi`. */
  readonly fetch: DiscordFetch
  readonly log: Log
  /** Aborting it closes the connection, as `close` does. */
  readonly signal?: AbortSignal
  /** Called while Discord is out of reach, with the reason, and with nothing when it is reached. */
  readonly trouble?: (why?: string) => void
  readonly intents?: number
  readonly restApi?: string
  /** Settles after the given milliseconds, or when the signal aborts. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>
}

export type ConnectionSettings = {
  readonly token: string
  readonly channelIds: readonly string[]
  readonly restApi: string
  readonly intents: number
}

export function withDefaults({ token, channelIds, restApi = DISCORD_API, intents = DISCORD_INTENTS }: DiscordOptions): ConnectionSettings {
  return { token, channelIds: typeof channelIds === 'string' ? [channelIds] : channelIds, restApi, intents }
}

/** @returns what to change; never contains the token */
export function faultOf({ token, channelIds, restApi, intents }: ConnectionSettings): string | undefined {
  if (token === '')
    return 'DISCORD_BOT_TOKEN: is empty; copy the token of the bot from https://discord.com/developers/applications, page Bot'
  if (!/^[\x21-\x7e]+$/.test(token))
    return 'DISCORD_BOT_TOKEN: contains blanks or characters that a token cannot have; copy it again, without "Bot "'
  if (channelIds.length === 0) return 'DISCORD_CHANNEL_ID: is empty; in Discord turn on Developer Mode and "Copy Channel ID"'
  const wrong = channelIds.find((id) => !/^\d{17,20}$/.test(id))
  if (wrong !== undefined)
    return `DISCORD_CHANNEL_ID: ${JSON.stringify(wrong)} is not a channel id, which is 17 to 20 digits ("Copy Channel ID")`
  if (!Number.isSafeInteger(intents) || intents < 0)
    return `intents: ${intents} is not a set of intents; use a whole number such as ${DISCORD_INTENTS}`
  if (!/^https?:$/.test(URL.parse(restApi)?.protocol ?? '')) return `restApi: ${JSON.stringify(restApi)} is not an http(s) URL`
  return undefined
}

/** Only a REST server that itself uses plain http, on loopback, may name a plain ws gateway. */
export function gatewayRule(restApi: string): (url: string) => boolean {
  const isPlain = restApi.startsWith('http:')
  return (url) => {
    const protocol = URL.parse(url)?.protocol
    return protocol === 'wss:' || (isPlain && protocol === 'ws:')
  }
}
