/** Classifies a failed call of Telegram's Bot API: wait, retry, or tell a person what to change. */

import type { Refusal } from '../outbox/send-pieces.ts'
import { TelegramFailure } from './bot-api.ts'

/** The wait for a 429 response without a time. */
const UNSAID_S = 1

/** @param about the requested object, as in "chat 123" */
export function refusalOf(error: unknown, about: string): Refusal {
  if (!(error instanceof TelegramFailure))
    return { kind: 'passing', message: `${about}: ${error instanceof Error ? error.message : String(error)}` }
  const { status, retryAfterS } = error.detail
  if (status === 429) return waiting(retryAfterS ?? UNSAID_S, about)
  if (status === undefined || status >= 500) return { kind: 'passing', message: `${about}: ${error.message}` }
  const conflict = status === 409 && !/webhook/i.test(error.message)
  if (conflict)
    return { kind: 'passing', message: `${about}: another program reads the messages of this bot (409); stop it, or give it its own bot` }
  return { kind: 'final', status, message: worded(error.message, status, about) }
}

/** Telegram's limits are per chat or per method. */
function waiting(seconds: number, about: string): Refusal {
  return { kind: 'wait', ms: seconds * 1000, isGlobal: false, message: `${about}: Telegram wants ${seconds} s of silence (429)` }
}

function worded(said: string, status: number, about: string): string {
  return `${about}: ${said} (${status})${advice[status] === undefined ? '' : `; ${advice[status]}`}`
}

const token = 'the bot token is wrong or was revoked: copy it anew from @BotFather (TELEGRAM_BOT_TOKEN)'

const advice: { readonly [status: number]: string } = {
  400: 'a person must write to the bot before it can write to them; check the id of the chat',
  401: token,
  403: 'the person has blocked the bot, or it was removed from the group',
  404: token,
  409: 'this bot has a webhook; remove it (deleteWebhook) or make a bot of its own for this',
}
