/** Follows everything that happens on the server, over one connection that finds its way back after a loss without missing an event. */

import { signal } from '@preact/signals'
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import type { HostEvent } from '../../../host/events/host-event.ts'
import { ApiError, stream } from './api.ts'

export type Live = HostEvent

/** `lost`: the server does not answer, and the page tries again; `out`: the session is over. */
export const connection = signal<'off' | 'live' | 'lost' | 'out'>('off')

export type Listeners<T> = { readonly listen: (listener: (event: T) => void) => () => void; readonly tell: (event: T) => void }

/** Makes a list of listeners. `listen` returns a function that removes the listener. */
export function listeners<T>(): Listeners<T> {
  const all = new Set<(event: T) => void>()
  return {
    listen: (listener) => {
      all.add(listener)
      return () => void all.delete(listener)
    },
    tell: (event) => {
      for (const listener of [...all]) listener(event)
    },
  }
}

/** Distributes the events of the home that the gateway serves. */
export const { listen, tell } = listeners<Live>()

/** Follows until the signal aborts or the session ends. `connected` is called each time the connection is there. */
export function follow(leaving: AbortSignal, connected: () => void): Promise<void> {
  return followEvents<Live>({ path: '/events', leaving, connected, told: tell })
}

type EventSubscription<T> = {
  readonly path: string
  readonly leaving: AbortSignal
  readonly connected: () => void
  readonly told: (event: T) => void
  /** The id of the last event that is known already. */
  readonly last?: string
}

export async function followEvents<T>({ path, leaving, connected, told, last = '' }: EventSubscription<T>): Promise<void> {
  const position = { last }
  for (let wait = 250; !leaving.aborted; wait = Math.min(wait * 2, 4_000)) {
    try {
      const headers = position.last === '' ? undefined : { 'last-event-id': position.last }
      const response = await stream('GET', path, { signal: leaving, headers })
      connection.value = 'live'
      connected()
      wait = 250
      for await (const { id, data } of readEvents(response)) {
        if (id !== undefined) position.last = id
        told(JSON.parse(data) as T)
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
export function pause(ms: number, leaving: AbortSignal): Promise<void> {
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

/** Reads server-sent events from an answer that streams. */
async function* readEvents(response: Response): AsyncGenerator<EventSourceMessage> {
  if (!response.body) return
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  const events: EventSourceMessage[] = []
  const parser = createParser({ onEvent: (event) => events.push(event) })
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    parser.feed(value)
    yield* events.splice(0)
  }
}
