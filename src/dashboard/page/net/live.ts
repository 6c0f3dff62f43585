/** Follows everything that happens in the home, over one connection that finds its way back after a loss without missing an event. */

import { signal } from '@preact/signals'
import { ApiError, stream } from './api.ts'
import { readEvents } from './sse.ts'

export type Live = {
  readonly id?: string
  readonly at: number
  readonly conversationId?: string
  readonly runId?: string
  readonly event: { readonly type: string; readonly [key: string]: unknown }
}

type Listener = (live: Live) => void

/** `lost`: the server does not answer, and the page tries again; `out`: the session is over. */
export const connection = signal<'off' | 'live' | 'lost' | 'out'>('off')

const listeners = new Set<Listener>()

/** @returns a function that ends the listening */
export function listen(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Follows until the signal aborts or the session ends. `reconnected` is called each time the connection is back. */
export async function follow(signalGiven: AbortSignal, reconnected: () => void): Promise<void> {
  let last: string | undefined
  for (let wait = 250; !signalGiven.aborted; wait = Math.min(wait * 2, 5_000)) {
    try {
      const response = await stream('GET', '/events', { signal: signalGiven, headers: last === undefined ? {} : { 'last-event-id': last } })
      if (connection.value === 'lost') reconnected()
      connection.value = 'live'
      wait = 250
      for await (const { id, data } of readEvents(response)) {
        if (id !== undefined) last = id
        tell(JSON.parse(data) as Live)
      }
    } catch (error) {
      if (signalGiven.aborted) return
      if (error instanceof ApiError && error.status === 401) {
        connection.value = 'out'
        return
      }
    }
    connection.value = 'lost'
    await new Promise((resolve) => setTimeout(resolve, wait))
  }
}

function tell(live: Live): void {
  for (const listener of listeners) listener(live)
}
