/** Sends answers and the typing indicator to Discord. */

import type { API } from '@discordjs/core'
import { MESSAGE_LIMIT } from '../outbox/chunk.ts'
import { createSender, type Sender, type Waiting } from '../outbox/send-pieces.ts'
import { within } from '../outbox/within.ts'
import { refusalOf } from './refusal.ts'

export type OutboxSettings = Waiting & { readonly api: () => API }

export type Outbox = Pick<Sender, 'send'> & {
  /** Shows the typing indicator for about ten seconds. Never rejects, because the indicator is optional. */
  typing(channel: string): Promise<void>
}

export function createOutbox(settings: OutboxSettings): Outbox {
  const { signal } = settings
  // A request while Discord's global rate limit applies would make the library set a timer that nothing can stop: the sender waits first.
  const sender = createSender({
    ...settings,
    service: 'Discord',
    limit: MESSAGE_LIMIT,
    refusalOf,
    attempt(channel, piece) {
      // All retries use the same nonce, so that a piece whose response got lost is not posted twice.
      const nonce = crypto.randomUUID().replaceAll('-', '').slice(0, 25)
      return () => create(settings, { channel, content: piece, nonce })
    },
  })
  return {
    send: sender.send,
    async typing(channel) {
      // A delayed indicator would be outdated, and several would arrive at once.
      if (signal.aborted || sender.isShut()) return
      const { channels } = settings.api()
      await within(signal, (own) => channels.showTyping(channel, { signal: own })).catch(() => {})
    },
  }
}

type Piece = { readonly channel: string; readonly content: string; readonly nonce: string }

/** Mentions notify nobody, because a model must not be able to notify everybody. */
async function create({ api, signal }: OutboxSettings, { channel, content, nonce }: Piece): Promise<string> {
  const message = { content, nonce, enforce_nonce: true, allowed_mentions: { parse: [] } }
  const { id } = await within(signal, (own) => api().channels.createMessage(channel, message, { signal: own }))
  if (typeof id !== 'string') throw new Error('it answers without the id of a message')
  return id
}
