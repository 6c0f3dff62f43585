/** Defines the options of a Discord connection with their defaults, and validates them before any request. */

import type { Log } from '../../runtime/port.ts'
import type { DiscordFetch } from './rest.ts'

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
  readonly intents?: number
  readonly restApi?: string
  /** Resolves after the given milliseconds, or rejects when the signal aborts. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>
}

export type Settled = { readonly token: string; readonly channelIds: readonly string[]; readonly restApi: string; readonly intents: number }

export function settle({ token, channelIds, restApi = DISCORD_API, intents = DISCORD_INTENTS }: DiscordOptions): Settled {
  return { token, channelIds: typeof channelIds === 'string' ? [channelIds] : channelIds, restApi, intents }
}

/** @returns what to change; never contains the token */
export function faultOf({ token, channelIds, restApi, intents }: Settled): string | undefined {
  if (token === '')
    return 'DISCORD_BOT_TOKEN: is empty; copy the token of the bot from https://discord.com/developers/applications, page Bot'
  if (!/^[\x21-\x7e]+$/.test(token)) return 'DISCORD_BOT_TOKEN: holds blanks or characters that no token has; copy it anew, without "Bot "'
  if (channelIds.length === 0) return 'DISCORD_CHANNEL_ID: is empty; in Discord turn on Developer Mode and "Copy Channel ID"'
  const wrong = channelIds.find((id) => !/^\d{17,20}$/.test(id))
  if (wrong !== undefined) return `DISCORD_CHANNEL_ID: ${JSON.stringify(wrong)} is no channel id; it is 17 to 20 digits ("Copy Channel ID")`
  if (!Number.isSafeInteger(intents) || intents < 0)
    return `intents: ${intents} is no set of intents; use a whole number such as ${DISCORD_INTENTS}`
  if (!/^https?:$/.test(URL.parse(restApi)?.protocol ?? '')) return `restApi: ${JSON.stringify(restApi)} is no http(s) URL`
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
