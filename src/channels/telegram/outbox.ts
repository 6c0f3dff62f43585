/** Sends answers, and shows that one is being written. */

import { isObject } from '../../kit/json.ts'
import { createSender, type Sender, type Waiting } from '../outbox/send-pieces.ts'
import type { BotApi } from './bot-api.ts'
import { refusalOf } from './bot-api.ts'

/** A chat, or a topic of a forum as `chat/topic`. */
type Address = string

export type Outbox = Pick<Sender, 'send'> & {
  /** Shows "typing" for about five seconds. Never rejects, because the indicator is optional. */
  typing(address: Address): Promise<void>
}

/** Telegram counts UTF-16 units. */
export const MESSAGE_LIMIT = 4_096

export function addressOf({ chat, thread }: { readonly chat: string; readonly thread?: number }): Address {
  return thread === undefined ? chat : `${chat}/${thread}`
}

export function createOutbox(settings: Waiting & { readonly api: BotApi }): Outbox {
  const { api, signal } = settings
  const sender = createSender({
    ...settings,
    service: 'Telegram',
    limit: MESSAGE_LIMIT,
    refusalOf,
    attempt: (address, piece, replyTo) => () => post(api, { ...placeOf(address), text: piece, ...replyIn(replyTo) }, signal),
  })
  return {
    async send(address, text, replyTo) {
      if (isAddress(address)) return sender.send(address, text, replyTo)
      return { ok: false, message: `${JSON.stringify(address)} is no chat of Telegram; write its id in digits` }
    },
    async typing(address) {
      if (signal.aborted || !isAddress(address)) return
      await api.call('sendChatAction', { ...placeOf(address), action: 'typing' }, { signal }).catch(() => {})
    },
  }
}

/** The text goes out as it is, and without a preview: Telegram's server would fetch an address that a model has written. */
async function post(api: BotApi, message: object, signal: AbortSignal): Promise<string> {
  const sent = await api.call('sendMessage', { ...message, link_preview_options: { is_disabled: true } }, { signal })
  if (!isObject(sent) || typeof sent.message_id !== 'number') throw new Error('it answers without the id of a message')
  return String(sent.message_id)
}

function isAddress(address: string): boolean {
  return /^-?\d{1,19}(?:\/\d{1,19})?$/.test(address)
}

function placeOf(address: Address): { readonly chat_id: number; readonly message_thread_id?: number } {
  const [chat, thread] = address.split('/').map(Number)
  return { chat_id: chat ?? 0, message_thread_id: thread }
}

/** The message may have been deleted meanwhile. */
function replyIn(replyTo: string | undefined): object {
  return replyTo === undefined ? {} : { reply_parameters: { message_id: Number(replyTo), allow_sending_without_reply: true } }
}
