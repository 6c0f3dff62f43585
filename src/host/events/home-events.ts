/** Connects a home to its event hub, which is loaded with the first subscription: without one, each commit costs one comparison. */

import { once } from '../../kit/once.ts'
import type { Memory } from '../../memory/memory.ts'
import type { AgentEvent } from '../../runtime/event.ts'
import type { RunIdentity } from '../../runtime/port.ts'
import { readStop } from '../../service/stop-file.ts'
import type { HomePoll } from './home-poll.ts'
import type { EventHub, HostEvent, Subscription } from './host-event.ts'
import type { Hub } from './hub.ts'
import { parsePosition } from './position.ts'

export type HomeEvents = Pick<Hub, 'committed' | 'piece' | 'lookAtStop'> & {
  /** Returns the hub as one host sees it; `closing` ends its subscriptions. */
  of(closing: AbortSignal): EventHub
}

export type HomeEventsOptions = {
  readonly memory: Memory
  readonly poll: HomePoll /** The path of the stop file. */
  readonly estop: string
}

export function createHomeEvents({ memory, poll, estop }: HomeEventsOptions): HomeEvents {
  const hub = once(async () => {
    const [{ createHub }, feed] = await Promise.all([import('./hub.ts'), memory.feed()])
    return createHub({ memory, feed, poll, stopped: () => readStop(estop), now: Date.now })
  })

  async function* subscribe(wanted: Subscription, from: Parameters<Hub['subscribe']>[1]): AsyncGenerator<HostEvent> {
    yield* (await hub.get()).subscribe(wanted, from)
  }

  return {
    committed: () => hub.made()?.committed(),
    piece: (run: RunIdentity, event: AgentEvent) => hub.made()?.piece(run, event),
    lookAtStop: () => hub.made()?.lookAtStop(),
    of: (closing) => ({
      latest: memory.journal.latest,
      subscribe: (wanted, signal = new AbortController().signal) =>
        subscribe(wanted, { position: parsePosition(wanted.after ?? memory.journal.latest()), signal, closing }),
    }),
  }
}
