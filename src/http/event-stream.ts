/** Writes server-sent events to one client, as fast as it reads. A client that reads too slowly is dropped, and may come back. */

import { quiet } from './http-error.ts'
import type { Connection } from './listen.ts'

export type ServerEvent = { readonly id?: string; readonly event?: string; readonly data: unknown }

export type EventStream = {
  readonly response: Response
  /** Does nothing once the client has disconnected. `data` is sent as JSON unless it is a text. */
  send(event: ServerEvent): void
  /** Resolves when little waits to be sent, or the client has disconnected: for callers with more to send than a client reads at once. */
  hasRoom(): Promise<void>
  /** Closes the stream when everything is sent. */
  end(): void
  /** Aborted when the client has disconnected, or was dropped. */
  readonly disconnected: AbortSignal
}

export type StreamOptions = {
  readonly connection: Connection
  /** How long the stream may be quiet before a comment shows that it is alive. */
  readonly pingMs?: number
  /** The most bytes that may wait for a slow client, and for how long. */
  readonly maxBytes?: number
  readonly maxWaitMs?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Sends a comment at once, for a stream whose first event may be long in coming. */
  readonly opening?: boolean
}

const encoder = new TextEncoder()

export function openEventStream({
  connection,
  pingMs = 15_000,
  maxBytes = 4_194_304,
  maxWaitMs = 30_000,
  headers = {},
  opening = false,
}: StreamOptions): EventStream {
  connection.stay()
  const disconnected = new AbortController()
  const queue: Uint8Array[] = []
  const state: {
    bytes: number
    ended: boolean
    over: boolean
    since: number
    wake: () => void
    drained: () => void
    timer?: ReturnType<typeof setTimeout>
  } = { bytes: 0, ended: false, over: false, since: 0, wake: () => {}, drained: () => {} }

  function close(controller?: ReadableStreamDefaultController<Uint8Array>): void {
    if (state.over) return
    state.over = true
    clearTimeout(state.timer)
    queue.length = 0
    state.wake()
    state.drained()
    if (controller && state.ended) controller.close()
    else disconnected.abort()
  }

  function put(text: string): void {
    if (state.over) return
    const bytes = encoder.encode(text)
    if (queue.length === 0) state.since = performance.now()
    queue.push(bytes)
    state.bytes += bytes.byteLength
    if (state.bytes > maxBytes) close()
    else {
      state.wake()
      pingLater()
    }
  }

  function pingLater(): void {
    clearTimeout(state.timer)
    state.timer = setTimeout(() => {
      const isStuck = queue.length > 0 && performance.now() - state.since > maxWaitMs
      if (isStuck) close()
      else if (queue.length > 0) pingLater()
      else put(': ping\n\n')
    }, pingMs)
  }

  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        while (queue.length === 0 && !state.ended && !state.over) {
          const { promise, resolve } = Promise.withResolvers<void>()
          state.wake = resolve
          await promise
        }
        if (state.over) return controller.error(new Error('dropped'))
        if (queue.length === 0) return close(controller)
        controller.enqueue(Buffer.concat(queue.splice(0)))
        state.bytes = 0
        state.drained()
      },
      cancel: () => close(),
    },
    { highWaterMark: 0 },
  )
  // A client sees the head of the answer with the first bytes.
  if (opening) put(': open\n\n')
  else pingLater()
  // The client of a HEAD request reads only the head.
  if (connection.isHead) close()
  return {
    response: new Response(body, {
      headers: { ...quiet, 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no', ...headers },
    }),
    send(event) {
      const frame = frameOf(event)
      connection.recorder?.frame(frame)
      put(frame)
    },
    async hasRoom() {
      while (!state.over && state.bytes > maxBytes / 8) {
        const { promise, resolve } = Promise.withResolvers<void>()
        state.drained = resolve
        await promise
      }
    },
    end() {
      connection.recorder?.end()
      state.ended = true
      state.wake()
    },
    disconnected: disconnected.signal,
  }
}

/** A line break inside a text would end its line, and an id with one would begin another field. */
function frameOf({ id, event, data }: ServerEvent): string {
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  const lines = text.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`)
  return `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}${lines.join('')}\n`
}
