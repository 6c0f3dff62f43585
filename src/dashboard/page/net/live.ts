/** Follows everything that happens in the home, over one connection that finds its way back after a loss without missing an event. */

import { signal } from '@preact/signals'
import type { HostEvent } from '../../../host/events/host-event.ts'
import { ApiError, stream } from './api.ts'
import { readEvents } from './sse.ts'

export type Live = HostEvent

type Listener = (live: Live) => void

/** `lost`: the server does not answer, and the page tries again; `out`: the session is over. */
export const connection = signal<'off' | 'live' | 'lost' | 'out'>('off')

const listeners = new Set<Listener>()

/** @returns a function that ends the listening */
export function listen(listener: Listener): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** Follows until the signal aborts or the session ends. `connected` is called each time the connection is there. */
export async function follow(leaving: AbortSignal, connected: () => void): Promise<void> {
  const position = { last: '' }
  for (let wait = 250; !leaving.aborted; wait = Math.min(wait * 2, 4_000)) {
    try {
      const headers = position.last === '' ? undefined : { 'last-event-id': position.last }
      const response = await stream('GET', '/events', { signal: leaving, headers })
      connection.value = 'live'
      connected()
      wait = 250
      for await (const { id, data } of readEvents(response)) {
        if (id !== undefined) position.last = id
        tell(JSON.parse(data) as Live)
      }
    } catch (error) {
      if (leaving.aborted) return
      if (error instanceof ApiError && error.status === 401) {
        connection.value = 'out'
        return
      }
    }
    connection.value = 'lost'
    await pause(wait, leaving)
  }
}

/** Waits, but no longer than until the network or the person is back. */
function pause(ms: number, leaving: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const over = new AbortController()
    const go = () => {
      clearTimeout(late)
      over.abort()
      resolve()
    }
    const late = setTimeout(go, ms)
    for (const [target, name] of [
      [window, 'online'],
      [document, 'visibilitychange'],
      [leaving, 'abort'],
    ] as const)
      target.addEventListener(name, go, { signal: over.signal })
  })
}

function tell(live: Live): void {
  for (const listener of [...listeners]) listener(live)
}
