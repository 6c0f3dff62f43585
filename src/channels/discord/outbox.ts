/** Sends answers to Discord: piece by piece in order, waiting where Discord says so, trying again where that may help. */

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
  /** Never rejects. One answer a channel at a time, in the order of the calls. */
  send(channel: string, text: string): Promise<Sent>
  /** Shows for some ten seconds that an answer is being written. Never rejects: it is only a courtesy. */
  typing(channel: string): Promise<void>
}

/** After the last of these a failure that might have passed is told. */
const PAUSES_MS = [1_000, 2_000, 4_000]

/** So long Discord may keep one piece waiting. */
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
      // Later it would be no news any more, and a burst of them.
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
  /** Shut while Discord wants silence from all of us; asked all the same, the library would set a timer that nothing can stop. */
  readonly gate: { opens: Promise<void> | undefined }
  readonly channel: string
  readonly content: string
}

async function postPiece(posting: Posting): Promise<Posted> {
  const { signal, log, channel } = posting
  // The same name each time: a piece whose answer got lost is not shown twice.
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

/** Whom an answer mentions is not told so: a model must not be able to call everybody. */
async function create({ api, signal, channel, content }: Posting, nonce: string): Promise<string> {
  const message = { content, nonce, enforce_nonce: true, allowed_mentions: { parse: [] } }
  const { id } = await within(signal, (own) => api().channels.createMessage(channel, message, { signal: own }))
  if (typeof id !== 'string') throw new Error('it answers without the id of a message')
  return id
}
