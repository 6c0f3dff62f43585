/** The desk of the daemon: messages of all channels are taken one after the other, in the order in which they came. */

import type { Heard } from '../../channels/heard.ts'
import type { Log } from '../../runtime/port.ts'

export type Desk = {
  /** Listens to a channel until it ends. Never rejects. */
  listen(messages: AsyncIterable<Heard>): Promise<void>
  /** Nothing more is taken. Resolves when the message at hand is answered; what still waited is told, one by one. */
  close(): Promise<void>
  busy(): boolean
}

/** `take` answers one message and never rejects. */
export function createDesk({ take, log }: { readonly take: (heard: Heard) => Promise<void>; readonly log: Log }): Desk {
  const waiting: Heard[] = []
  const state: { closed: boolean; working?: Promise<void> } = { closed: false }

  async function work(): Promise<void> {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await take(next)
    delete state.working
  }

  function put(heard: Heard): void {
    waiting.push(heard)
    state.working ??= work()
  }

  async function listen(messages: AsyncIterable<Heard>): Promise<void> {
    try {
      for await (const heard of messages) {
        if (state.closed) return lost(heard)
        put(heard)
      }
    } catch (error) {
      log('error', 'channel failed', { why: error instanceof Error ? error.message : String(error) })
    }
  }

  function lost({ channel, from, text }: Heard): void {
    log('warn', 'message not answered', { from, channel, beginning: text.slice(0, 80), why: 'the daemon is stopping; send it again' })
  }

  return {
    listen,
    busy: () => state.working !== undefined,
    async close() {
      state.closed = true
      for (const heard of waiting.splice(0)) lost(heard)
      await state.working
    },
  }
}
