/** Sends answers to Discord: piece by piece in order, waiting when Discord asks for it, and retrying when that may help. */

import type { API } from '@discordjs/core'
import type { Log } from '../../runtime/port.ts'
import { chunks } from './chunk.ts'
import { refusalOf } from './refusal.ts'
import { within } from './within.ts'

export type Sent = { readonly ok: true; readonly messageIds: readonly string[] } | { readonly ok: false; readonly message: string }

export type OutboxSettings = {
  readonly api: () => API
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
  readonly log: Log
  readonly signal: AbortSignal
}

export type Outbox = {
  /** Never rejects. Sends one answer per channel at a time, in the order of the calls. */
  send(channel: string, text: string): Promise<Sent>
  /** Shows the typing indicator for about ten seconds. Never rejects, because the indicator is optional. */
  typing(channel: string): Promise<void>
}

/** The pauses between retries; after the last one a temporary failure is reported. */
const PAUSES_MS = [1_000, 2_000, 4_000]

/** How long Discord may delay one piece, in milliseconds. */
const PATIENCE_MS = 10 * 60_000

export function createOutbox(settings: OutboxSettings): Outbox {
  const { signal } = settings
  const tails = new Map<string, Promise<unknown>>()
  const gate: Posting['gate'] = { opens: undefined }
  const post = (channel: string, content: string) => postPiece({ ...settings, gate, channel, content })
  return {
    async send(channel, text) {
      const before = tails.get(channel)
      const sent = (async () => {
        await before
        return sendAll(chunks(text.toWellFormed()), (piece) => post(channel, piece))
      })()
      tails.set(channel, sent)
      return sent
    },
    async typing(channel) {
      // A delayed indicator would be outdated, and several would arrive at once.
      if (signal.aborted || gate.opens) return
      const { channels } = settings.api()
      await within(signal, (own) => channels.showTyping(channel, { signal: own })).catch(() => {})
    },
  }
}

async function sendAll(pieces: readonly string[], post: (piece: string) => Promise<Posted>): Promise<Sent> {
  if (pieces.length === 0) return { ok: false, message: 'the answer is blank, and Discord takes no blank messages' }
  const messageIds: string[] = []
  for (const piece of pieces) {
    const posted = await post(piece)
    if (!posted.ok) return { ok: false, message: pieces.length === 1 ? posted.message : `${posted.message} (${part(messageIds, pieces)})` }
    messageIds.push(posted.id)
  }
  return { ok: true, messageIds }
}

function part(done: readonly string[], all: readonly string[]): string {
  return `${done.length} of ${all.length} parts were sent`
}

type Posted = { readonly ok: true; readonly id: string } | { readonly ok: false; readonly message: string }

type Posting = OutboxSettings & {
  /**
   * Set while Discord's global rate limit applies to us; a request in that time would make the library set a timer that nothing can stop.
   */
  readonly gate: { opens: Promise<void> | undefined }
  readonly channel: string
  readonly content: string
}

async function postPiece(posting: Posting): Promise<Posted> {
  const { signal, log, channel } = posting
  // All retries use the same nonce, so that a piece whose response got lost is not posted twice.
  const nonce = crypto.randomUUID().replaceAll('-', '').slice(0, 25)
  const waited = { tries: 0, ms: 0 }
  for (;;) {
    await posting.gate.opens
    if (signal.aborted) return { ok: false, message: 'the connection to Discord was closed before this was sent' }
    try {
      return { ok: true, id: await create(posting, nonce) }
    } catch (error) {
      if (signal.aborted) continue
      const refusal = refusalOf(error, `channel ${channel}`)
      const ms = refusal.kind === 'wait' ? refusal.ms : refusal.kind === 'passing' ? PAUSES_MS[waited.tries] : undefined
      if (ms === undefined || waited.ms + ms > PATIENCE_MS) return { ok: false, message: `${refusal.message}${after(waited.tries)}` }
      if (refusal.kind === 'wait') waited.ms += ms
      else waited.tries += 1
      log('warn', 'discord asks to wait', { channel, reason: refusal.message, waitMs: ms })
      const wait = posting.sleep(ms, signal).catch(() => {})
      if (refusal.kind === 'wait' && refusal.isGlobal) shut(posting.gate, wait)
      await wait
    }
  }
}

function shut(gate: Posting['gate'], wait: Promise<void>): void {
  const opens = wait.then(() => {
    if (gate.opens === opens) gate.opens = undefined
  })
  gate.opens = opens
}

function after(tries: number): string {
  return tries === 0 ? '' : ` (after ${tries + 1} attempts)`
}

/** Mentions notify nobody, because a model must not be able to notify everybody. */
async function create({ api, signal, channel, content }: Posting, nonce: string): Promise<string> {
  const message = { content, nonce, enforce_nonce: true, allowed_mentions: { parse: [] } }
  const { id } = await within(signal, (own) => api().channels.createMessage(channel, message, { signal: own }))
  if (typeof id !== 'string') throw new Error('it answers without the id of a message')
  return id
}
