/** Calls Discord's REST API through a given fetch, keeps timers and retries out of the library, and sends answers. */

import { API } from '@discordjs/core'
import { DiscordAPIError, HTTPError, RateLimitError, REST, type RESTOptions } from '@discordjs/rest'
import { errorText } from '../../kit/errors.ts'
import { isObject, parseJson } from '../../kit/json.ts'
import { MESSAGE_LIMIT } from '../outbox/chunk.ts'
import { createSender, foreignAnswer, type RetryOptions, type Sender, type SendRefusal, within } from '../outbox/send-pieces.ts'

/** A guarded fetch. */
export type DiscordFetch = (url: string, init: RequestInit) => Promise<Response>

type Settings = { readonly api: string; readonly token: string; readonly fetch: DiscordFetch }

/**
 * The library waits for rate limits and retries in a way that neither a test nor a shutdown can interrupt, and it retries without a pause.
 * These options make it report both as errors.
 */
export function createApi({ api, token, fetch }: Settings): () => API {
  const rest = new REST({
    api,
    retries: 0,
    timeout: 15_000,
    rejectOnRateLimit: () => true,
    makeRequest: requestThrough(fetch, token),
    // The sweeps only forget idle channels, of which we have few.
    hashSweepInterval: 0,
    handlerSweepInterval: 0,
  })
  // After a 401 the library forgets the token, and would answer every later request only with "no token".
  return () => new API(rest.setToken(token))
}

/** Reads the whole body here, so that the timeout covers it and it is consumed even when the library ignores it. */
function requestThrough(fetch: DiscordFetch, token: string): RESTOptions['makeRequest'] {
  return async (url, { method = 'GET', headers, body, signal }) => {
    const answer = await fetch(url, {
      method,
      headers: new Headers(Object.entries(Object(headers)).map(([name, value]): [string, string] => [name, String(value)])),
      body: typeof body === 'string' ? body : null,
      signal: signal ?? null,
    })
    const bytes = await answer.arrayBuffer()
    const { status, statusText } = answer
    const text = new TextDecoder().decode(bytes).replaceAll(token, '<token>')
    if (!isOwnForm(status, text)) throw new ForeignAnswer(foreignAnswer('Discord', status, text, 'channels.discord.api'))
    return new Response(bytes.byteLength === 0 ? null : bytes, { status, statusText, headers: new Headers(answer.headers) })
  }
}

class ForeignAnswer extends Error {}

/** Discord answers with JSON; its errors have a message and a code, which is 0 or has at least five digits. Its library reads 429. */
function isOwnForm(status: number, text: string): boolean {
  if (status === 204 || status === 429) return true
  const body = parseJson(text)
  if (status < 400) return isObject(body)
  return isObject(body) && typeof body.message === 'string' && typeof body.code === 'number' && (body.code === 0 || body.code >= 10_000)
}

export type OutboxSettings = RetryOptions & { readonly api: () => API }

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
    attempt(channel, piece, { key, n }) {
      // All retries use the same nonce, so that a piece whose response got lost is not posted twice.
      const nonce = key === undefined ? crypto.randomUUID().replaceAll('-', '').slice(0, 25) : `${key}-${n}`
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

type OutgoingMessage = { readonly channel: string; readonly content: string; readonly nonce: string }

/** Sends one message. Its mentions notify nobody, because a model must not be able to notify everybody. */
async function create({ api, signal }: OutboxSettings, { channel, content, nonce }: OutgoingMessage): Promise<string> {
  const message = { content, nonce, enforce_nonce: true, allowed_mentions: { parse: [] } }
  const { id } = await within(signal, (own) => api().channels.createMessage(channel, message, { signal: own }))
  if (typeof id !== 'string') throw new Error('the answer has no message id')
  return id
}

export const PORTAL = 'https://discord.com/developers/applications'

/** The wait after a 429 response that names no time. */
const DEFAULT_WAIT_MS = 1_000

/** Classifies a failed request: wait, retry, or tell a person what to change. @param about the requested object, as in "channel 123" */
export function refusalOf(error: unknown, about: string): SendRefusal {
  if (error instanceof RateLimitError) return waiting(error, about)
  if (error instanceof ForeignAnswer) return { kind: 'passing', message: `${about}: ${error.message}` }
  if (error instanceof HTTPError) return { kind: 'passing', message: `${about}: Discord answers ${error.status}` }
  if (error instanceof DiscordAPIError)
    return { kind: 'final', status: error.status, isOfBot: error.status === 401, message: worded(error, about) }
  if (error instanceof Error && error.name === 'AbortError') return { kind: 'passing', message: `${about}: no answer from Discord in time` }
  return { kind: 'passing', message: `${about}: Discord cannot be reached: ${errorText(error)}` }
}

/** Returns the longer wait: timeToReset says when the bucket refills, retryAfter is the answer to the rejected request. */
function waiting({ retryAfter, timeToReset, global: isGlobal }: RateLimitError, about: string): SendRefusal {
  const retryMs = retryAfter > 0 ? retryAfter : DEFAULT_WAIT_MS
  const ms = Math.ceil(timeToReset > retryMs ? timeToReset : retryMs)
  return { kind: 'wait', ms, isGlobal, message: `${about}: Discord wants ${Math.ceil(ms / 1000)} s without requests (429)` }
}

function worded({ status, message, code }: DiscordAPIError, about: string): string {
  const problem = `${status} ${message.replace(/^\d{3}: /, '').replaceAll('\n', '; ')}`
  const todo = advice[Number(code)] ?? advice[status]
  return `${about}: ${problem}${todo === undefined ? '' : `; ${todo}`}`
}

/** By status, or by Discord's own code. */
const advice: { readonly [status: number]: string } = {
  50083: 'the thread is archived: open it again, or list another channel (DISCORD_CHANNEL_ID)',
  401: `the bot token is wrong or was replaced: copy it again from ${PORTAL}, page Bot (DISCORD_BOT_TOKEN)`,
  403: 'invite the bot to the server and allow it "View Channel" and "Send Messages" there',
  404: 'no such channel, or the bot is not in its server: check the id (DISCORD_CHANNEL_ID) and invite the bot',
}
