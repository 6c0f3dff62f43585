/** Follows the events of the control plane: when the stream breaks it reconnects after the last event it has, so that none is missing or doubled. */

import { createParser } from 'eventsource-parser'
import type { ControlEvent, EventQuery } from '../contract/activity-shapes.ts'
import { countRefusals } from '../contract/plane-refusal.ts'
import type { Transport, TransportOptions } from './transport.ts'

export type FollowQuery = Partial<Pick<EventQuery, 'after' | 'type' | 'task_id' | 'run_id' | 'agent_id'>>

/** The connection is dead when no ping arrives for this many ms. */
const silentMs = 40_000
const longestWaitMs = 5_000

/** Yields events until the signal aborts. @throws PlaneRefusal when the token is not in force or the query is wrong */
export async function* followEvents(
  transport: Transport,
  options: Pick<TransportOptions, 'sleep' | 'random'>,
  query: FollowQuery,
  signal: AbortSignal,
): AsyncGenerator<ControlEvent> {
  const refusals = countRefusals()
  const state: { last: number | undefined; failures: number } = { last: query.after, failures: 0 }
  while (!signal.aborted) {
    try {
      for await (const event of oneStream(transport, { ...query, after: state.last }, signal)) {
        state.failures = 0
        refusals.reset()
        if (event === 'open') continue
        state.last = event.id
        yield event
      }
    } catch (error) {
      if (signal.aborted) return
      if (refusals.isFinal(error)) throw error
    }
    state.failures += 1
    await options.sleep(Math.min(longestWaitMs, 50 * 2 ** Math.min(state.failures, 10)) * (0.5 + options.random() / 2), signal)
  }
}

type StreamQuery = { readonly [Name in keyof FollowQuery]: FollowQuery[Name] | undefined }

async function* oneStream(transport: Transport, query: StreamQuery, signal: AbortSignal): AsyncGenerator<ControlEvent | 'open'> {
  const silence = new AbortController()
  const both = AbortSignal.any([signal, silence.signal])
  const state: { timer?: ReturnType<typeof setTimeout> } = {}
  const restartTimer = () => {
    clearTimeout(state.timer)
    state.timer = setTimeout(() => silence.abort(), silentMs)
  }
  restartTimer()
  try {
    const response = await transport.send({
      ...{ method: 'GET', path: 'events', query, signal: both, repeatable: false, timeoutMs: 2_147_483_647 },
      headers: { accept: 'text/event-stream' },
    })
    if (!response.headers.get('content-type')?.startsWith('text/event-stream')) throw new Error('the answer is not a stream of events')
    yield 'open'
    for await (const frame of framesOf(response, restartTimer)) yield frame
  } finally {
    clearTimeout(state.timer)
    silence.abort()
  }
}

async function* framesOf(response: Response, restartTimer: () => void): AsyncGenerator<ControlEvent> {
  const decoder = new TextDecoder()
  const texts: string[] = []
  const parser = createParser({ onEvent: ({ data }) => texts.push(data) })
  for await (const piece of response.body ?? []) {
    restartTimer()
    parser.feed(decoder.decode(piece, { stream: true }))
    for (const text of texts.splice(0)) yield JSON.parse(text)
  }
}
