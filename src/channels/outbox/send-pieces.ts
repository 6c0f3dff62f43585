/** Sends answers to a chat: piece by piece in order, waiting when its server asks for that, and retrying when that may help. */

import { FailureError } from '../../host/failure.ts'
import { atEnd } from '../../kit/errors.ts'
import { cut, wordsOfPage } from '../../kit/text.ts'
import type { Log } from '../../runtime/port.ts'
import { chunks } from './chunk.ts'

/** `isFinal`: this address can never be delivered to, as the service itself has said again and again. */
export type SendResult = { readonly ok: true } | { readonly ok: false; readonly message: string; readonly isFinal?: boolean }

/** @throws FailureError when it never can be sent, another Error when it may be sent later */
export function assertSent(sent: SendResult): void {
  if (!sent.ok) throw sent.isFinal ? new FailureError('error', sent.message) : new Error(sent.message)
}

export type SendOptions = {
  /** The message that is answered; it comes with the first piece. */
  readonly replyTo?: string | undefined
  /** Names the text, so that a piece whose receipt was lost is recognized where the service can do that, also after a restart. */
  readonly key?: string
  /** How many pieces were delivered already. */
  readonly skip?: number
  /** Called after each piece with how many are delivered. */
  readonly progress?: (pieces: number) => void
}

/**
 * Why a request failed: the server asks to wait, it may work the next time, or a person has to change something. `final` is only what the
 * service says in its own form; callers believe it when it was said `FINAL_TIMES` times in a row.
 */
export type SendRefusal =
  | { readonly kind: 'wait'; readonly ms: number; readonly isGlobal: boolean; readonly message: string }
  | { readonly kind: 'passing'; readonly message: string }
  | { readonly kind: 'final'; readonly status: number; readonly isOfBot: boolean; readonly message: string }

export type RetryOptions = {
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
  readonly log: Log
  readonly signal: AbortSignal
}

type SenderSettings = RetryOptions & {
  /** The name of the chat system, for messages. */
  readonly service: string
  /** The longest message that it accepts, in UTF-16 units. */
  readonly limit: number
  /**
   * Returns what sends this one piece; it is called again for each retry, and resolves with the id of the message. `n`: its place in the text.
   */
  readonly attempt: (address: string, piece: string, options: SendOptions & { readonly n: number }) => () => Promise<unknown>
  readonly refusalOf: (error: unknown, about: string) => SendRefusal
}

export type Sender = {
  /** Never rejects. Sends one answer per address at a time, in the order of the calls. */
  send(address: string, text: string, options?: SendOptions): Promise<SendResult>
  /** Tells whether the server has asked for silence everywhere. */
  isShut(): boolean
}

export const FINAL_TIMES = 3

/** Describes an answer that is not in the service's own form: a proxy, a portal or another server on the way wrote it. */
export function foreignAnswer(service: string, status: number, body: string, setting: string): string {
  if (status >= 500) return `${service} answers ${status}`
  const words = wordsOfPage(body.slice(0, 4_000))
  const said = words === '' ? '' : ` ${JSON.stringify(cut(words, 120))}`
  return `something other than ${service} answers ${status}${said}; check the network, a proxy or portal on the way, and ${setting}`
}

/** The pauses between retries; after the last one a temporary failure is reported. */
const PAUSES_MS = [1_000, 2_000, 4_000]

/** How long the server may delay one piece, in milliseconds. */
const PATIENCE_MS = 10 * 60_000

export function createSender(settings: SenderSettings): Sender {
  const { service, limit } = settings
  const tails = new Map<string, Promise<unknown>>()
  const gate: SendGate = { opens: undefined }
  return {
    async send(address, text, options = {}) {
      const before = tails.get(address)
      const post = (piece: string, n: number) =>
        postPiece({ ...settings, gate, address, attemptOnce: settings.attempt(address, piece, { ...options, n }) })
      const sent = (async () => {
        await before
        return sendAll(chunks(text.toWellFormed(), limit), { service, post, ...options })
      })()
      tails.set(address, sent)
      return sent
    },
    isShut: () => gate.opens !== undefined,
  }
}

type Post = SendOptions & { readonly service: string; readonly post: (piece: string, n: number) => Promise<SendResult> }

async function sendAll(pieces: readonly string[], { service, post, skip = 0, progress }: Post): Promise<SendResult> {
  if (pieces.length === 0) return { ok: false, message: `the answer is blank, and ${service} takes no blank messages`, isFinal: true }
  for (const [n, piece] of pieces.entries()) {
    if (n < skip) continue
    const posted = await post(piece, n)
    const part = pieces.length === 1 ? '' : ` (${n} of ${pieces.length} parts were sent)`
    if (!posted.ok) return { ...posted, message: `${posted.message}${part}` }
    progress?.(n + 1)
  }
  return { ok: true }
}

/** `opens` is set while a rate limit of the whole server applies to us: then nothing is requested. */
type SendGate = { opens: Promise<void> | undefined }

type Posting = SenderSettings & { readonly gate: SendGate; readonly address: string; readonly attemptOnce: () => Promise<unknown> }

async function postPiece(posting: Posting): Promise<SendResult> {
  const { signal, log, address: channel, service } = posting
  const waited = { tries: 0, ms: 0, finals: 0 }
  for (;;) {
    await posting.gate.opens
    if (signal.aborted) return { ok: false, message: `the connection to ${service} was closed before this was sent` }
    try {
      await posting.attemptOnce()
      return { ok: true }
    } catch (error) {
      if (signal.aborted) continue
      const refusal = posting.refusalOf(error, `channel ${channel}`)
      waited.finals = refusal.kind === 'final' ? waited.finals + 1 : 0
      const ms = refusal.kind === 'wait' ? refusal.ms : waited.finals < FINAL_TIMES ? PAUSES_MS[waited.tries] : undefined
      if (ms === undefined || waited.ms + ms > PATIENCE_MS) {
        const isFinal = refusal.kind === 'final' && !refusal.isOfBot && waited.finals >= FINAL_TIMES
        return { ok: false, message: `${refusal.message}${after(waited.tries)}`, ...(isFinal ? { isFinal } : {}) }
      }
      if (refusal.kind === 'wait') waited.ms += ms
      else waited.tries += 1
      log('warn', `${service.toLowerCase()} asks to wait`, { channel, reason: refusal.message, waitMs: ms })
      const wait = posting.sleep(ms, signal).catch(() => {})
      if (refusal.kind === 'wait' && refusal.isGlobal) shut(posting.gate, wait)
      await wait
    }
  }
}

function shut(gate: SendGate, wait: Promise<void>): void {
  const opens = wait.then(() => {
    if (gate.opens === opens) gate.opens = undefined
  })
  gate.opens = opens
}

function after(tries: number): string {
  return tries === 0 ? '' : ` (after ${tries + 1} attempts)`
}

/**
 * Gives each request its own signal, which aborts when `signal` does: libraries never remove their listeners, and a signal that lives for months
 * would collect them. @returns what `request` returns
 */
export async function within<T>(signal: AbortSignal, request: (own: AbortSignal) => Promise<T>): Promise<T> {
  const own = new AbortController()
  const leave = () => own.abort(signal.reason)
  signal.addEventListener('abort', leave)
  if (signal.aborted) leave()
  using _end = atEnd(() => signal.removeEventListener('abort', leave))
  return await request(own.signal)
}
