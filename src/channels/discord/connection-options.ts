/** What a connection to Discord is made of, its defaults, and what is wrong with it before anything is tried. */

import type { Log } from '../../runtime/port.ts'
import type { DiscordFetch } from './rest.ts'

/** Where the guarded fetch has to be let out to, unless `restApi` says otherwise. */
export const DISCORD_API = 'https://discord.com/api'

/**
 * GUILD_MESSAGES (512) and MESSAGE_CONTENT (32768). With the first alone Discord delivers messages without their text, but for those that
 * mention the bot; the second must be turned on for the bot in Discord's developer portal.
 */
export const DISCORD_INTENTS = 512 | 32_768

export type DiscordOptions = {
  readonly token: string
  /** All others are ignored, and nothing is sent there. */
  readonly channelIds: string | readonly string[]
  /** Guarded, and let out to the origin of `restApi`. */
  readonly fetch: DiscordFetch
  readonly log: Log
  /** Closes the connection, as `close` does. */
  readonly signal?: AbortSignal
  readonly intents?: number
  readonly restApi?: string
  /** Resolves after so many milliseconds, or rejects when the signal says so. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>
}

export type Settled = { readonly token: string; readonly channelIds: readonly string[]; readonly restApi: string; readonly intents: number }

export function settle({ token, channelIds, restApi = DISCORD_API, intents = DISCORD_INTENTS }: DiscordOptions): Settled {
  return { token, channelIds: typeof channelIds === 'string' ? [channelIds] : channelIds, restApi, intents }
}

/** @returns what has to be changed; never with the token in it */
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

/** Only a server that is itself spoken to in the clear, on loopback, may name a gateway that is. */
export function gatewayRule(restApi: string): (url: string) => boolean {
  const isPlain = restApi.startsWith('http:')
  return (url) => {
    const protocol = URL.parse(url)?.protocol
    return protocol === 'wss:' || (isPlain && protocol === 'ws:')
  }
}
