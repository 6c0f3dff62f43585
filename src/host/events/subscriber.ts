/** Holds what one subscriber has not taken yet: at most so many events, after which the subscription ends. */

import { createInbox } from '../../kernel/inbox.ts'
import type { HostEvent, Subscription } from './host-event.ts'

export type Ended = { readonly reason: 'slow' | 'closed' | 'failed'; readonly message: string }

export type Subscriber = {
  /** Adds an event that the subscriber may see. */
  offer(event: HostEvent): void
  /** The subscriber takes what it was offered until now, and then the reason. */
  end(ended: Ended): void
  /** Ends when `signal` is aborted, or after the reason. */
  items(signal: AbortSignal): AsyncGenerator<HostEvent>
}

export type SubscriberOptions = {
  readonly wanted: Subscription
  readonly now: () => number
  /** How many events may wait. */
  readonly capacity: number
}

export function createSubscriber({ wanted, now, capacity }: SubscriberOptions): Subscriber {
  const waiting = createInbox<HostEvent>()
  const state: { size: number; ended?: Ended; wake: () => void } = { size: 0, wake: () => {} }

  function end(ended: Ended): void {
    state.ended ??= ended
    state.wake()
  }

  return {
    end,
    offer(event) {
      if (state.ended || !isFor(wanted, event)) return
      // A piece that streams is repeated as a whole, so a subscriber that is late can do without it.
      if (event.seq === undefined && state.size >= capacity / 2) return
      if (state.size >= capacity)
        return end({ reason: 'slow', message: `more than ${capacity} events waited; subscribe again with the last id` })
      waiting.push(event)
      state.size += 1
      state.wake()
    },
    async *items(signal) {
      const woken = () => state.wake()
      signal.addEventListener('abort', woken)
      try {
        while (!signal.aborted) {
          const next = waiting.first()
          if (next) {
            waiting.drop()
            state.size -= 1
            yield next
          } else if (state.ended) {
            yield { at: now(), event: { type: 'subscription_ended', ...state.ended } }
            return
          } else
            await new Promise<void>((resolve) => {
              state.wake = resolve
            })
        }
      } finally {
        signal.removeEventListener('abort', woken)
      }
    },
  }
}

export function isFor({ conversationId, runId, sees }: Subscription, event: HostEvent): boolean {
  if (conversationId !== undefined && event.conversationId !== conversationId) return false
  if (runId !== undefined && event.runId !== runId) return false
  return sees?.(event) ?? true
}
