/** Follows everything that happens on the server, over one connection that finds its way back after a loss without missing an event. */

import { signal } from '@preact/signals'
import type { HostEvent } from '../../../host/events/host-event.ts'
import { ApiError, stream } from './api.ts'

export type Live = HostEvent

/** `lost`: the server does not answer, and the page tries again; `out`: the session is over. */
export const connection = signal<'off' | 'live' | 'lost' | 'out'>('off')

export type Listeners<T> = { readonly listen: (listener: (event: T) => void) => () => void; readonly tell: (event: T) => void }

/** `listen` returns a function that ends the listening. */
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

/** What happens in the home that the gateway serves. */
export const { listen, tell } = listeners<Live>()

/** Follows until the signal aborts or the session ends. `connected` is called each time the connection is there. */
export function follow(leaving: AbortSignal, connected: () => void): Promise<void> {
  return followEvents<Live>({ path: '/events', leaving, connected, told: tell })
}

type Following<T> = {
  readonly path: string
  readonly leaving: AbortSignal
  readonly connected: () => void
  readonly told: (event: T) => void
  /** The id of the last event that is known already. */
  readonly last?: string
}

export async function followEvents<T>({ path, leaving, connected, told, last = '' }: Following<T>): Promise<void> {
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

type ServerEvent = { readonly id?: string; readonly type: string; readonly data: string }

/** Reads server-sent events from an answer that streams. The format: the HTML standard, "Server-sent events". */
async function* readEvents(response: Response): AsyncGenerator<ServerEvent> {
  if (!response.body) return
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let held = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    held += value.replaceAll('\r', '')
    const blocks = held.split('\n\n')
    held = blocks.pop() ?? ''
    for (const block of blocks) {
      const event = parse(block)
      if (event) yield event
    }
  }
}

/** Undefined for a comment, such as the ping that keeps the connection open. */
function parse(block: string): ServerEvent | undefined {
  const fields = block.split('\n').map((line) => /^(\w+): ?(.*)$/.exec(line))
  const of = (name: string) => fields.flatMap((field) => (field?.[1] === name ? [field[2] ?? ''] : []))
  const data = of('data')
  if (data.length === 0) return undefined
  const id = of('id').at(-1)
  return { type: of('event').at(-1) ?? 'message', data: data.join('\n'), id }
}
