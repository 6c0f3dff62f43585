/** Selects the Discord messages for the agent: written by a person, in a configured channel, with text. */

import type { GatewayMessageCreateDispatchData } from '@discordjs/core'

/** Ids are Discord's, 17 to 20 digits. */
export type DiscordMessage = {
  readonly channel: string
  readonly text: string
  readonly authorId: string
  readonly messageId: string
}

export type InboundMessage =
  | { readonly kind: 'message'; readonly message: DiscordMessage }
  | { readonly kind: 'not for us' }
  | { readonly kind: 'no text'; readonly messageId: string; readonly channel: string; readonly why: string }

/** A message and a reply; Discord itself writes joins, pins, boosts and similar messages. */
const WRITTEN: ReadonlySet<number> = new Set([0, 19])

type Ears = { readonly channelIds: readonly string[]; readonly selfId: string | undefined }

export function hear(data: GatewayMessageCreateDispatchData, { channelIds, selfId }: Ears): InboundMessage {
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
