/** Follows GET /events as a browser does: when the stream breaks it asks again, with the id of the last event. */

import { isObject } from '../../src/kit/json.ts'

export type Seen = { readonly id: string; readonly conversationId: string; readonly type: string; readonly text: string }

export type EventFollower = {
  /** The numbered events so far, in the order of their arrival. */
  readonly seen: readonly Seen[]
  /** How often it had to ask again. */
  breaks(): number
  stop(): Promise<void>
}

/** `url` is asked for each time: a server that began again may listen elsewhere. */
export function followEvents(url: () => string, token: string, after = '0'): EventFollower {
  const stop = new AbortController()
  const seen: Seen[] = []
  const state = { last: after, breaks: 0 }

  async function read(): Promise<void> {
    const headers = { authorization: `Bearer ${token}`, 'last-event-id': state.last }
    const response = await fetch(`${url()}/events`, { headers, signal: stop.signal })
    const decoder = new TextDecoder()
    let rest = ''
    for await (const piece of response.body ?? []) {
      const frames = (rest + decoder.decode(piece, { stream: true })).split('\n\n')
      rest = frames.pop() ?? ''
      for (const frame of frames) take(frame)
    }
  }

  function take(frame: string): void {
    const id = /^id: (.*)$/m.exec(frame)?.[1]
    const data = /^data: (.*)$/m.exec(frame)?.[1]
    if (id === undefined || data === undefined) return
    const told: unknown = JSON.parse(data)
    const event = isObject(told) && isObject(told.event) ? told.event : {}
    state.last = id
    seen.push({ id, conversationId: isObject(told) ? String(told.conversationId) : '', type: String(event.type), text: data })
  }

  const following = (async () => {
    while (!stop.signal.aborted) {
      await read().catch(() => {})
      if (stop.signal.aborted) return
      state.breaks += 1
      await Bun.sleep(20)
    }
  })()
  return {
    seen,
    breaks: () => state.breaks,
    async stop() {
      stop.abort()
      await following
    },
  }
}
