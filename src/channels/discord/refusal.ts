/** Classifies a failed request to Discord's REST API: wait, retry, or tell a person what to change. */

import { DiscordAPIError, HTTPError, RateLimitError } from '@discordjs/rest'
import { errorText } from '../../kit/errors.ts'
import type { Refusal } from '../outbox/send-pieces.ts'

export const PORTAL = 'https://discord.com/developers/applications'

/** The wait for a 429 response without a time. */
const UNSAID_MS = 1_000

/** @param about the requested object, as in "channel 123" */
export function refusalOf(error: unknown, about: string): Refusal {
  if (error instanceof RateLimitError) return waiting(error, about)
  if (error instanceof HTTPError) return { kind: 'passing', message: `${about}: Discord answers ${error.status}` }
  if (error instanceof DiscordAPIError) return { kind: 'final', status: error.status, message: worded(error, about) }
  if (error instanceof Error && error.name === 'AbortError') return { kind: 'passing', message: `${about}: no answer from Discord in time` }
  return { kind: 'passing', message: `${about}: Discord cannot be reached: ${errorText(error)}` }
}

/** timeToReset says when the bucket refills, retryAfter what the rejected request was told; the longer time counts. */
function waiting({ retryAfter, timeToReset, global: isGlobal }: RateLimitError, about: string): Refusal {
  const told = retryAfter > 0 ? retryAfter : UNSAID_MS
  const ms = Math.ceil(timeToReset > told ? timeToReset : told)
  return { kind: 'wait', ms, isGlobal, message: `${about}: Discord wants ${Math.ceil(ms / 1000)} s of silence (429)` }
}

function worded({ status, message }: DiscordAPIError, about: string): string {
  const said = `${status} ${message.replace(/^\d{3}: /, '').replaceAll('\n', '; ')}`
  return `${about}: ${said}${advice[status] === undefined ? '' : `; ${advice[status]}`}`
}

const advice: { readonly [status: number]: string } = {
  401: `the bot token is wrong or was replaced: copy it anew from ${PORTAL}, page Bot (DISCORD_BOT_TOKEN)`,
  403: 'invite the bot to the server and allow it "View Channel" and "Send Messages" there',
  404: 'no such channel, or the bot is not in its server: check the id (DISCORD_CHANNEL_ID) and invite the bot',
}
