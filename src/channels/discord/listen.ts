/** Translates gateway events into the three that matter here: the bot's identity, a resumed session, and messages from people. */

import { GatewayDispatchEvents } from '@discordjs/core'
import type { Log } from '../../runtime/port.ts'
import { type DiscordMessage, hear } from './inbound.ts'
import type { ShardSettings } from './shard.ts'

export type ListenerSettings = {
  readonly channelIds: readonly string[]
  readonly log: Log
  readonly onReady: (userId: string) => void
  readonly onMessage: (message: DiscordMessage) => void
}

export function createListener({ channelIds, log, onReady, onMessage }: ListenerSettings): ShardSettings['onDispatch'] {
  const self: { id?: string } = {}
  return (payload) => {
    if (payload.t === GatewayDispatchEvents.Ready) {
      const { id, username } = payload.d.user
      self.id = id
      log('info', 'discord connected', { bot: username, userId: id })
      onReady(id)
    }
    if (payload.t === GatewayDispatchEvents.Resumed) log('info', 'discord resumed')
    if (payload.t !== GatewayDispatchEvents.MessageCreate) return
    const heard = hear(payload.d, { channelIds, selfId: self.id })
    if (heard.kind === 'message') onMessage(heard.message)
    if (heard.kind === 'no text')
      log('warn', 'discord message ignored', { messageId: heard.messageId, channel: heard.channel, reason: heard.why })
  }
}
