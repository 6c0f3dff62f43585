/** The desk of the daemon: messages of all channels are taken one after the other, in the order in which they came. */

import type { Log } from '../runtime/port.ts'
import type { Heard } from './inbound-message.ts'

export type Desk = {
  /** Listens to a channel until it ends. Never rejects. */
  listen(messages: AsyncIterable<Heard>): Promise<void>
  /** Nothing more is taken: what waits, and what is still heard, is told so. Resolves when the message at hand is answered. */
  close(): Promise<void>
}

export type DeskOptions = {
  /** Answers one message, and never rejects. */
  readonly take: (heard: Heard) => Promise<void>
  readonly log: Log
  /** With so many waiting the channels are not listened to: whoever writes then waits as well. */
  readonly most?: number
}

export function createDesk({ take, log, most = 100 }: DeskOptions): Desk {
  const waiting: Heard[] = []
  const state: { closed: boolean; working?: Promise<void>; room: PromiseWithResolvers<void> } = {
    closed: false,
    room: Promise.withResolvers(),
  }

  async function work(): Promise<void> {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      makeRoom()
      await take(next)
    }
    delete state.working
  }

  function makeRoom(): void {
    state.room.resolve()
    state.room = Promise.withResolvers()
  }

  async function put(heard: Heard): Promise<void> {
    waiting.push(heard)
    state.working ??= work()
    while (waiting.length >= most && !state.closed) await state.room.promise
  }

  async function listen(messages: AsyncIterable<Heard>): Promise<void> {
    try {
      for await (const heard of messages) await (state.closed ? turnAway(heard) : put(heard))
    } catch (error) {
      log('error', 'channel failed', { why: error instanceof Error ? error.message : String(error) })
    }
  }

  async function turnAway({ channel, from, text, answer }: Heard): Promise<void> {
    log('warn', 'message not answered', { from, channel, beginning: text.slice(0, 80), why: 'the daemon is stopping' })
    await answer('[not answered: the assistant is being stopped; send it again later]')
  }

  return {
    listen,
    async close() {
      state.closed = true
      const left = waiting.splice(0)
      makeRoom()
      await Promise.all([...left.map(turnAway), state.working])
    },
  }
}
