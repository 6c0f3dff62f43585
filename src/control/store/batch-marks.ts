/** Marks in a command what an executor handles itself: that the command must be the only one from there on, and whom the commit wakes. */

import type { Command } from '../contract/store-port.ts'

/** An executor that runs commands in batches does not send this text to the database: it waits for the others. */
export const EXCLUSIVE = '-- exclusive'

/** Waits until the command is the only one of its batch. What it has read before may have changed. */
export function* exclusive(): Command<void> {
  yield [EXCLUSIVE]
}

export function createTurns(count: number) {
  const waiting: (() => void)[] = []
  let active = count

  function ended(): void {
    active -= 1
    const next = active === 0 ? waiting.shift() : undefined
    if (!next) return
    active = 1
    next()
  }

  /** Resolves when every other command has ended or waits as well. */
  function exclusive(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.push(resolve)
    ended()
    return promise
  }

  return { exclusive, ended }
}

/** An executor does not send this text to the database: it collects the topic, once for each command. */
export const ANNOUNCE = '-- announce'

export function* announce(topic: string): Command<void> {
  yield [ANNOUNCE, [topic]]
}

/** `notifyAll` is for announcements of other processes that may have been lost. */
export function createListeners() {
  const byTopic = new Map<string, Set<() => void>>()

  function listen(topic: string, listener: () => void): () => void {
    const listeners = byTopic.get(topic) ?? new Set()
    // Wraps the callback, because the same one may listen twice.
    const own = () => listener()
    byTopic.set(topic, listeners.add(own))
    return () => {
      listeners.delete(own)
      if (listeners.size === 0 && byTopic.get(topic) === listeners) byTopic.delete(topic)
    }
  }

  /** Calls every listener of these topics; a listener must not throw. */
  function notify(topics: Iterable<string>): void {
    for (const topic of topics) for (const listener of [...(byTopic.get(topic) ?? [])]) listener()
  }

  return { listen, notify, notifyAll: () => notify([...byTopic.keys()]) }
}
