/** Sends events to one client, at the pace at which it reads, for as long as its credential is in force. */

import type { ApiEnv } from '../../http/api.ts'
import { type EventStream, openEventStream } from '../../http/event-stream.ts'
import { pause } from '../../service/sleep.ts'
import type { ControlEvent } from '../contract/activity-shapes.ts'
import type { Caller } from '../contract/caller.ts'
import type { EventPlane } from '../contract/plane.ts'
import type { ControlServer } from './control-server.ts'

/** How long somebody whose credential was revoked may still be told something, in ms. */
const recheckMs = 700

export type Streamed = {
  readonly caller: Caller
  readonly env: ApiEnv<Caller>['Bindings']
  readonly query: Parameters<EventPlane['follow']>[1]
}

export function streamEvents({ plane, stopping, counters, log }: ControlServer, { caller, env, query }: Streamed): Response {
  const ended = counters.began('stream', caller)
  const stream = openEventStream({ connection: env.connection, opening: true })
  const over = new AbortController()
  const end = () => over.abort()
  for (const signal of [stream.gone, stopping]) signal.addEventListener('abort', end, { once: true })
  if (stopping.aborted) end()
  void watchCredential(env.isInForce, over)
  void pass(plane.events.follow(caller, query, over.signal), stream)
    .catch((error: unknown) => log('warn', 'events ended', { why: error instanceof Error ? error.message : String(error) }))
    .finally(() => {
      end()
      stopping.removeEventListener('abort', end)
      ended()
      stream.end()
    })
  return stream.response
}

async function pass(events: AsyncIterable<ControlEvent>, stream: EventStream): Promise<void> {
  for await (const event of events) {
    stream.send({ id: String(event.id), data: event })
    await stream.hasRoom()
  }
}

/** Looks at times whether the credential is still in force; a look that fails ends the stream, and the client asks again. */
async function watchCredential(isInForce: () => Promise<boolean>, over: AbortController): Promise<void> {
  while (!over.signal.aborted) {
    await pause(recheckMs, over.signal)
    if (!over.signal.aborted && !(await isInForce().catch(() => false))) over.abort()
  }
}
