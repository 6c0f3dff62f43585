/** Connects Discord as one of the channels when the configuration enables it. */

import type { Setup } from '../../host/api.ts'
import { FailureError } from '../../host/failure.ts'
import { sleep } from '../../kit/abort.ts'
import type { Values } from '../../kit/settings.ts'
import { createProviderFetch } from '../../workspace/net/provider-fetch.ts'
import type { Channel, ChannelHost, InboundMessage } from '../inbox/channel-api.ts'
import { createDelivery, type Delivery } from '../outbox/delivery.ts'
import { assertSent } from '../outbox/send-pieces.ts'
import { connectDiscord, DISCORD_API, type Discord, type DiscordOptions, faultOf, withDefaults } from './connect.ts'
import type { discordRows } from './settings.ts'

type DiscordSettings = Values<typeof discordRows>

export function openDiscordChannel(setup: Setup, settings: DiscordSettings): Channel {
  return createDiscordChannel(settings, optionsFor(setup, settings))
}

/** Discord may be unreachable for long: the other channels do not wait for it, and they continue when it ends for good. */
function createDiscordChannel({ channelIds }: DiscordSettings, options: DiscordOptions): Channel {
  const state: { connected?: Discord; delivery?: Delivery } = {}
  const send: Discord['send'] = async (...message) =>
    (await state.connected?.send(...message)) ?? { ok: false, message: 'Discord is not connected' }

  async function listen(connected: Discord, delivery: Delivery, { receive }: ChannelHost): Promise<void> {
    for await (const { channel, text, authorId } of connected.messages)
      receive({
        ...{ channel, text, from: 'discord', person: authorId },
        ...conversationOf(channel, channelIds),
        working: () => void connected.typing(channel),
        answer: (words, about) => delivery.deliver({ address: channel, text: words, ...about }),
      })
  }

  return {
    name: 'discord',
    async start(host, signal) {
      const connected = await connectDiscord({ ...options, signal, trouble: host.trouble })
      if (connected.ok) {
        state.connected = connected
        host.setup.log('info', 'channel started', { channel: 'discord', user: connected.userId })
        state.delivery ??= createDelivery({ channel: 'discord', store: host.channelStore, send, sleep, log: host.setup.log, signal })
        state.delivery.resume()
        await listen(connected, state.delivery, host)
      }
      const ended = connected.ok ? await connected.ended : connected
      if (!ended.ok && !signal.aborted) throw new FailureError('error', ended.message)
    },
    async send(address, text) {
      assertSent(await send(address, text))
    },
    supportsDraftUpdates: () => false,
  }
}

/** The first listed channel is the agent's own conversation, as on the FIFOs; each other channel is a separate conversation. */
function conversationOf(channel: string, [own]: readonly string[]): Pick<InboundMessage, 'conversation'> {
  return channel === own ? {} : { conversation: `discord ${channel}` }
}

type Connecting = {
  readonly setup: Setup
  readonly settings: DiscordSettings
  /** Aborting it closes the connection, even with messages still unsent. */
  readonly signal: AbortSignal
}

/**
 * @returns undefined when the signal stopped it before it connected. @throws FailureError `error` for wrong settings or a permanent failure
 */
export async function connectTo({ setup, settings, signal }: Connecting) {
  const connected = await connectDiscord({ ...optionsFor(setup, settings), signal })
  if (connected.ok) return connected
  if (signal.aborted) return undefined
  throw new FailureError('error', connected.message)
}

function optionsFor({ context, log, redactor }: Setup, { tokenEnv, channelIds, api }: DiscordSettings): DiscordOptions {
  const token = context.env[tokenEnv] ?? ''
  if (token !== '') redactor.register(token, tokenEnv)
  const restApi = api ?? DISCORD_API
  const options = { token, channelIds, fetch: createProviderFetch({ baseUrl: restApi }), log, restApi }
  const fault = faultOf(withDefaults(options))
  if (fault !== undefined) throw new FailureError('error', fault)
  return options
}
