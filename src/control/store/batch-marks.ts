/** Marks in a command what no database gets: that it has to be the only one from there on, and whom the commit wakes. */

import type { Command } from '../contract/store-port.ts'

/** An executor that runs commands beside each other does not send this text to the database: it waits for the others. */
export const ALONE = '-- alone'

/** What the command has read until here may have changed afterwards. For commands that run beside others. */
export function* alone(): Command<void> {
  yield [ALONE]
}

type Turns = {
  /** Resolves when every other command has ended, or waits as well. */
  alone(): Promise<void>
  ended(): void
}

export function createTurns(count: number): Turns {
  const waiting: (() => void)[] = []
  let active = count

  function ended(): void {
    active -= 1
    const next = active === 0 ? waiting.shift() : undefined
    if (!next) return
    active = 1
    next()
  }

  function alone(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.push(resolve)
    ended()
    return promise
  }

  return { alone, ended }
}

/** An executor does not send this text to the database: it collects the topic, once a command. */
export const ANNOUNCE = '-- announce'

export function* announce(topic: string): Command<void> {
  yield [ANNOUNCE, [topic]]
}

type Listeners = {
  listen(topic: string, heard: () => void): () => void
  /** Calls every listener of these topics; a listener must not throw. */
  tell(topics: Iterable<string>): void
  /** For a time when announcements of other processes may have been lost. */
  tellAll(): void
}

export function createListeners(): Listeners {
  const byTopic = new Map<string, Set<() => void>>()

  function listen(topic: string, heard: () => void): () => void {
    const listeners = byTopic.get(topic) ?? new Set()
    // A fresh function: the same callback may listen twice.
    const own = () => heard()
    byTopic.set(topic, listeners.add(own))
    return () => {
      listeners.delete(own)
      if (listeners.size === 0 && byTopic.get(topic) === listeners) byTopic.delete(topic)
    }
  }

  function tell(topics: Iterable<string>): void {
    for (const topic of topics) for (const heard of [...(byTopic.get(topic) ?? [])]) heard()
  }

  return { listen, tell, tellAll: () => tell([...byTopic.keys()]) }
}
