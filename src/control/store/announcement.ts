/** Marks "tell the listeners of this topic after the commit" inside a command, and keeps the listeners of a process. */

import type { Command } from '../contract/store-port.ts'

/** An executor does not send this text to the database: it collects the topic, once a command. */
export const ANNOUNCE = '-- announce'

export function* announce(topic: string): Command<void> {
  yield [ANNOUNCE, [topic]]
}

export type Listeners = {
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
