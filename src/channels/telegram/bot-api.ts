/**
 * Calls Telegram's Bot API through a given fetch, and sends answers with it. The token is part of each address, so no message contains an
 * address.
 */

import { errorText } from '../../kit/errors.ts'
import { isObject, parseJson } from '../../kit/json.ts'
import { createSender, foreignAnswer, type RetryOptions, type Sender, type SendRefusal } from '../outbox/send-pieces.ts'

/** A guarded fetch. */
type TelegramFetch = (url: string, init: RequestInit) => Promise<Response>

type BotApiSettings = { readonly api: string; readonly token: string; readonly fetch: TelegramFetch }

export type CallOptions = {
  readonly signal: AbortSignal
  /** Default: 15 seconds. */
  readonly timeoutMs?: number
}

export type BotApi = {
  /** @returns `result` of the answer @throws TelegramFailure */
  call(method: string, params: object, options: CallOptions): Promise<unknown>
  /** Fetches a file by its `file_path`. @throws TelegramFailure, also when it is longer than `most` bytes */
  file(path: string, options: CallOptions & { readonly most: number }): Promise<Uint8Array>
}

/** `status` is absent when the answer was not in Telegram's own form, so that something in between may have written it. */
export class TelegramFailure extends Error {
  override readonly name = 'TelegramFailure'
  constructor(
    message: string,
    readonly detail: { readonly status?: number; readonly retryAfterS?: number; readonly movedTo?: number } = {},
  ) {
    super(message)
  }
}

/** The longest answer to a call: 100 updates are far below it. */
const MOST_BYTES = 16_777_216
const TIMEOUT_MS = 15_000

export function createBotApi({ api, token, fetch }: BotApiSettings): BotApi {
  const base = api.replace(/\/+$/, '')
  const hide = (text: string) => text.replaceAll(token, '<token>').replaceAll(encodeURIComponent(token), '<token>')

  async function request<T>(url: string, init: RequestInit, options: CallOptions, read: (answer: Response) => Promise<T>): Promise<T> {
    const own = new AbortController()
    const timer = setTimeout(() => own.abort(), options.timeoutMs ?? TIMEOUT_MS)
    const leave = () => own.abort()
    options.signal.addEventListener('abort', leave)
    if (options.signal.aborted) leave()
    try {
      return await read(await fetch(url, { ...init, signal: own.signal }))
    } catch (error) {
      if (error instanceof TelegramFailure) throw error
      const why = errorText(error)
      throw new TelegramFailure(own.signal.aborted ? 'no answer from Telegram in time' : `Telegram cannot be reached: ${hide(why)}`)
    } finally {
      clearTimeout(timer)
      options.signal.removeEventListener('abort', leave)
    }
  }

  return {
    call(method, params, options) {
      const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(params) }
      return request(`${base}/bot${token}/${method}`, init, options, async (answer) =>
        resultOf(answer.status, new TextDecoder().decode(await bytesOf(answer, MOST_BYTES)), hide),
      )
    },
    file(path, options) {
      if (!isFilePath(path)) throw new TelegramFailure(`Telegram names a file that cannot be fetched: ${JSON.stringify(path.slice(0, 80))}`)
      return request(`${base}/file/bot${token}/${path}`, {}, options, async (answer) => {
        if (answer.ok) return bytesOf(answer, options.most)
        await answer.body?.cancel()
        throw new TelegramFailure(`Telegram answers ${answer.status} to the request for the file`, { status: answer.status })
      })
    },
  }
}

/** The path becomes part of an address, and must not lead to another one. */
function isFilePath(path: string): boolean {
  return /^[\w-][\w.-]*(?:\/[\w-][\w.-]*)*$/.test(path) && path.length <= 300
}

function resultOf(status: number, text: string, hide: (text: string) => string): unknown {
  const body = parseJson(text)
  if (isObject(body) && body.ok === true) return body.result
  const { ok, error_code: code, description, parameters } = isObject(body) ? body : {}
  if (ok !== false || typeof code !== 'number' || typeof description !== 'string')
    throw new TelegramFailure(foreignAnswer('Telegram', status, hide(text), 'channels.telegram.api'))
  const { retry_after: retryAfterS, migrate_to_chat_id: movedTo } = isObject(parameters) ? parameters : {}
  throw new TelegramFailure(hide(description.slice(0, 300)), {
    status: code,
    retryAfterS: typeof retryAfterS === 'number' && retryAfterS >= 0 ? retryAfterS : undefined,
    movedTo: Number.isSafeInteger(movedTo) ? Number(movedTo) : undefined,
  })
}

async function bytesOf(answer: Response, most: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of answer.body ?? []) {
    length += piece.byteLength
    if (length > most) throw new TelegramFailure(`it is larger than ${most} bytes`, { status: 413 })
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

/** The wait after a 429 response that names no time. */
const DEFAULT_WAIT_S = 1

/** @param about the requested object, as in "chat 123" */
export function refusalOf(error: unknown, about: string): SendRefusal {
  if (!(error instanceof TelegramFailure)) return { kind: 'passing', message: `${about}: ${errorText(error)}` }
  const { status, retryAfterS } = error.detail
  if (status === 429) return waiting(retryAfterS ?? DEFAULT_WAIT_S, about)
  if (status === undefined || status >= 500) return { kind: 'passing', message: `${about}: ${error.message}` }
  const conflict = status === 409 && !/webhook/i.test(error.message)
  if (conflict)
    return { kind: 'passing', message: `${about}: another program reads the messages of this bot (409); stop it, or give it its own bot` }
  return { kind: 'final', status, isOfBot: advice[status] !== undefined, message: worded(error.message, status, about) }
}

/** Telegram's limits are per chat or per method. */
function waiting(seconds: number, about: string): SendRefusal {
  return { kind: 'wait', ms: seconds * 1000, isGlobal: false, message: `${about}: Telegram wants ${seconds} s without requests (429)` }
}

function worded(problem: string, status: number, about: string): string {
  const todo = advice[status] ?? chatAdvice.find(([words]) => words.test(problem))?.[1]
  return `${about}: ${problem} (${status})${todo === undefined ? '' : `; ${todo}`}`
}

const token = 'the bot token is wrong or was revoked: copy it again from @BotFather (TELEGRAM_BOT_TOKEN)'

const advice: { readonly [status: number]: string } = {
  401: token,
  404: token,
  409: 'this bot has a webhook; remove it (deleteWebhook) or make a bot of its own for this',
}

const chatAdvice: readonly (readonly [RegExp, string])[] = [
  [/blocked|kicked|deactivated|not a member/i, 'the person has blocked the bot, or it was removed from the group'],
  [/chat not found|initiate/i, 'a person must write to the bot before it can write to them; check the id of the chat'],
]

/** A chat, or a topic of a forum as `chat/topic`. */
type Address = string

export type Outbox = Pick<Sender, 'send'> & {
  /** Shows "typing" for about five seconds. Never rejects, because the indicator is optional. */
  typing(address: Address): Promise<void>
}

/** Telegram counts UTF-16 units. */
const MESSAGE_LIMIT = 4_096

export function addressOf({ chat, thread }: { readonly chat: string; readonly thread?: number }): Address {
  return thread === undefined ? chat : `${chat}/${thread}`
}

/** `moved`: called when Telegram says that a chat has another id now. */
type OutboxSettings = RetryOptions & { readonly api: BotApi; readonly moved?: (from: string, to: string) => void }

const topicNote = '[The topic is closed or deleted, so I write here.]\n\n'

export function createOutbox(settings: OutboxSettings): Outbox {
  const { api, signal, moved } = settings
  const sender = createSender({
    ...settings,
    service: 'Telegram',
    limit: MESSAGE_LIMIT - topicNote.length,
    refusalOf,
    attempt: (address, piece, { replyTo, n }) => {
      // The message that it replies to may have been deleted meanwhile.
      const reply = n === 0 && replyTo ? { message_id: Number(replyTo), allow_sending_without_reply: true } : undefined
      const message = { ...placeOf(address), text: piece, reply_parameters: reply }
      const elsewhere = (chat: string, note = '') => post(api, { ...placeOf(chat), text: `${note}${piece}` }, signal)
      return () =>
        post(api, message, signal).catch((error: unknown) => {
          const [chat = '', topic] = address.split('/')
          const { movedTo } = error instanceof TelegramFailure ? error.detail : {}
          if (movedTo !== undefined) {
            moved?.(chat, String(movedTo))
            return elsewhere(String(movedTo))
          }
          const isTopicLost = topic !== undefined && /TOPIC_|thread not found/i.test(errorText(error))
          if (isTopicLost) return elsewhere(chat, n === 0 ? topicNote : '')
          throw error
        })
    },
  })
  return {
    async send(address, text, options) {
      if (isAddress(address)) return sender.send(address, text, options)
      return { ok: false, isFinal: true, message: `${JSON.stringify(address)} is not a Telegram chat; write its id in digits` }
    },
    async typing(address) {
      if (signal.aborted || !isAddress(address)) return
      await api.call('sendChatAction', { ...placeOf(address), action: 'typing' }, { signal }).catch(() => {})
    },
  }
}

/** Sends the text unchanged, and without a preview: Telegram's server would fetch an address that a model has written. */
async function post(api: BotApi, message: object, signal: AbortSignal): Promise<string> {
  const sent = await api.call('sendMessage', { ...message, link_preview_options: { is_disabled: true } }, { signal })
  if (!isObject(sent) || typeof sent.message_id !== 'number') throw new Error('the answer has no message id')
  return String(sent.message_id)
}

function isAddress(address: string): boolean {
  return /^-?\d{1,19}(?:\/\d{1,19})?$/.test(address)
}

function placeOf(address: Address): { readonly chat_id: number; readonly message_thread_id?: number } {
  const [chat, thread] = address.split('/').map(Number)
  // The general topic of a forum is 1 in updates, and is refused in requests.
  return { chat_id: chat ?? 0, message_thread_id: thread === 1 ? undefined : thread }
}
