/** Runs one turn for a client that reads its events as they happen. */

import { type EventStream, openEventStream } from '../../../http/event-stream.ts'
import type { Connection } from '../../../http/listen.ts'
import type { AgentEvent } from '../../../runtime/event.ts'
import type { Talks, TurnDone, TurnRequest } from './talks.ts'

/** What happens to a turn whose client goes away: it goes on, or it is cancelled. */
export type OnDisconnect = 'continue' | 'cancel'

export type StreamedTurn = Omit<TurnRequest, 'show' | 'begun' | 'signal'> & {
  readonly connection: Connection
  readonly onDisconnect: OnDisconnect
  readonly show: (event: AgentEvent, stream: EventStream) => void
  /** Sends what comes after the last event. */
  readonly ended?: (done: TurnDone, stream: EventStream) => void
}

/** Resolves when the turn begins, so that a refused one is answered with its status. @throws as Talks.turn */
export async function streamTurn(talks: Talks, { connection, onDisconnect, show, ended, ...request }: StreamedTurn): Promise<Response> {
  const opened = Promise.withResolvers<EventStream>()
  const state: { stream?: EventStream } = {}
  const leaving = leavingSignal(connection, onDisconnect)
  const turn = talks.turn({
    ...request,
    signal: leaving.signal,
    begun(conversation) {
      const stream = openEventStream({ connection, headers: { 'x-conversation-id': conversation.id } })
      if (onDisconnect === 'cancel') stream.gone.addEventListener('abort', () => leaving.abort(), { once: true })
      state.stream = stream
      opened.resolve(stream)
    },
    show: (event) => state.stream && show(event, state.stream),
  })
  void turn.then(
    (done) => {
      if (state.stream) ended?.(done, state.stream)
      state.stream?.end()
    },
    (error: unknown) => {
      opened.reject(error)
      state.stream?.end()
    },
  )
  return (await opened.promise).response
}

/** Aborts when the client goes away, if that ends the turn. */
export function leavingSignal({ gone }: Connection, onDisconnect: OnDisconnect): AbortController {
  const leaving = new AbortController()
  if (onDisconnect === 'cancel') gone.addEventListener('abort', () => leaving.abort(), { once: true })
  return leaving
}
