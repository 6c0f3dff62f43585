/** Queues messages: it processes messages of one conversation in order of arrival, and different conversations in parallel. */

import type { Log } from '../../runtime/port.ts'
import type { InboundMessage } from './channel-api.ts'

export type MessageQueue<M extends InboundMessage> = {
  /** Returns at once; when too many messages wait in the conversation, the message gets a refusal as its answer. */
  put(message: M): void
  /** Stops accepting messages: waiting and later messages get a refusal. Resolves when the current messages are answered. */
  close(): Promise<void>
}

export type QueueOptions<M extends InboundMessage> = {
  /** Answers one message, and never rejects. */
  readonly take: (message: M) => Promise<void>
  readonly log: Log
  /** The most messages, and the most characters of them, that may wait in one conversation. */
  readonly most?: number
  readonly mostChars?: number
}

const waitingWords = (count: number) => (count === 1 ? '1 message waits' : `${count} messages wait`)

type ConversationQueue<M extends InboundMessage> = { readonly waiting: M[]; chars: number }

export function createMessageQueue<M extends InboundMessage>({
  take,
  log,
  most = 1_000,
  mostChars = 16_777_216,
}: QueueOptions<M>): MessageQueue<M> {
  /** The conversations with running or waiting messages. */
  const lines = new Map<string | undefined, ConversationQueue<M>>()
  const state: { closed: boolean; readonly working: Set<Promise<void>> } = { closed: false, working: new Set() }

  async function work(name: string | undefined, line: ConversationQueue<M>): Promise<void> {
    for (let next = line.waiting.shift(); next !== undefined; next = line.waiting.shift()) {
      line.chars -= next.text.length
      await take(next)
    }
    lines.delete(name)
  }

  function keep(work: Promise<void>): void {
    state.working.add(work)
    void work.finally(() => state.working.delete(work))
  }

  function put(message: M): void {
    const { conversation: name, text } = message
    const existing = lines.get(name)
    const line: ConversationQueue<M> = existing ?? { waiting: [], chars: 0 }
    const why = refusal(line, text)
    if (why !== undefined) {
      keep(refuse(message, why))
      return
    }
    line.waiting.push(message)
    line.chars += text.length
    if (existing) return
    lines.set(name, line)
    keep(work(name, line))
  }

  function refusal({ waiting, chars }: ConversationQueue<M>, text: string): string | undefined {
    if (state.closed) return 'the assistant is being stopped; send it again later'
    const isFull = waiting.length >= most || chars + text.length > mostChars
    return isFull ? `${waitingWords(waiting.length)} here already; send it again later` : undefined
  }

  async function refuse({ channel, from, text, answer, settled }: InboundMessage, why: string): Promise<void> {
    log('warn', 'message not answered', { from, channel, beginning: text.slice(0, 80), why })
    await answer(`[not answered: ${why}]`)
    settled?.()
  }

  return {
    put,
    async close() {
      state.closed = true
      for (const line of lines.values()) for (const message of line.waiting.splice(0)) put(message)
      while (state.working.size > 0) await Promise.all(state.working)
    },
  }
}
