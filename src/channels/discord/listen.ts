/** Translates gateway events into the three that matter here: the bot's identity, a resumed session, and messages from people. */

import { GatewayDispatchEvents, type GatewayMessageCreateDispatchData } from '@discordjs/core'
import type { Log } from '../../runtime/port.ts'
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

/** Ids are Discord's, 17 to 20 digits. */
export type DiscordMessage = {
  readonly channel: string
  readonly text: string
  readonly authorId: string
  readonly messageId: string
}

type InboundMessage =
  | { readonly kind: 'message'; readonly message: DiscordMessage }
  | { readonly kind: 'not for us' }
  | { readonly kind: 'no text'; readonly messageId: string; readonly channel: string; readonly why: string }

/** A message and a reply; Discord itself writes joins, pins, boosts and similar messages. */
const WRITTEN: ReadonlySet<number> = new Set([0, 19])

type Ears = { readonly channelIds: readonly string[]; readonly selfId: string | undefined }

/** Selects the Discord messages for the agent: written by a person, in a configured channel, with text. */
function hear(data: GatewayMessageCreateDispatchData, { channelIds, selfId }: Ears): InboundMessage {
  const { author, channel_id: channel, content, id: messageId } = data
  const isMachine = author.bot === true || author.system === true || data.webhook_id !== undefined || author.id === selfId
  if (!channelIds.includes(channel) || isMachine || !WRITTEN.has(data.type)) return { kind: 'not for us' }
  if (typeof content !== 'string' || content.trim() === '') return { kind: 'no text', messageId, channel, why: whyNoText(data) }
  return { kind: 'message', message: { channel, text: content, authorId: author.id, messageId } }
}

/** Without the intent Discord also empties the attachments, so a message without any content shows that the intent is missing. */
function whyNoText({ attachments, embeds, sticker_items, poll }: GatewayMessageCreateDispatchData): string {
  const hasOther = [attachments, embeds, sticker_items].some((list) => (list?.length ?? 0) > 0) || poll !== undefined
  if (hasOther) return 'it holds only attachments, stickers or a poll, which are not read'
  return 'Discord delivered it empty; turn on "Message Content Intent" at https://discord.com/developers/applications, page Bot'
}
