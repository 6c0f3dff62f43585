/** Serves events: pages of what happened, and streams of what happens. */

import { createInbox } from '../../../kernel/inbox.ts'
import type { ControlEvent } from '../../contract/activity-shapes.ts'
import type { Caller } from '../../contract/caller.ts'
import type { EventPlane } from '../../contract/plane.ts'
import type { Row } from '../../contract/store-port.ts'
import { int, object, type PlaneContext } from '../command.ts'
import { createEventHub, type EventHub } from './event-hub.ts'
import { type EventFilter, eventOf, filterOf, lastEventId, matches, readEvents } from './event-row.ts'

/**
 * A list is newest first, and its `next` is the `before` of the next page. With `after` it is oldest first, and its `next` is the next
 * `after`.
 */
export function createEventPlane(context: PlaneContext): EventPlane {
  const hub = createEventHub(context)
  return {
    async list(caller, { after, before, limit, ...wanted }) {
      const filter = filterOf(caller, wanted)
      if (!filter) return { events: [], next: null }
      const range = { filter, limit: limit + 1, ...(after === undefined ? {} : { after }), ...(before === undefined ? {} : { before }) }
      const rows = await context.store.read(() => readEvents(range))
      const events = rows.slice(0, limit).map(eventOf)
      return { events, next: rows.length > limit ? (events.at(-1)?.id ?? null) : null }
    },
    follow: (caller, { after, ...wanted }, signal) =>
      followEvents(context, { hub, caller, filter: filterOf(caller, wanted), after, signal }),
  }
}

type Following = {
  readonly hub: EventHub
  readonly caller: Caller
  /** Undefined: the caller may see nothing of what it asked for. */
  readonly filter: EventFilter | undefined
  readonly after: number | undefined
  readonly signal: AbortSignal
}

/** Events that wait in memory for a subscriber. One that has more waiting reads them from the database when it comes to them. */
const mostWaiting = 256
const rowsAtOnce = 200

type State = { position: number; waiting: number; isLate: boolean; isOver: boolean; wake: () => void }

/** Ends when the signal is aborted, and when the token or key of the caller is revoked. */
async function* followEvents(context: PlaneContext, { hub, caller, filter, after, signal }: Following): AsyncGenerator<ControlEvent> {
  const inbox = createInbox<Row>()
  const state: State = { position: 0, waiting: 0, isLate: true, isOver: signal.aborted, wake: () => {} }

  function hear(row: Row): void {
    if (isRevoked(caller, row)) state.isOver = true
    else if (state.isLate || !filter || !matches(filter, row)) return
    else if (state.waiting >= mostWaiting) state.isLate = true
    else {
      inbox.push(row)
      state.waiting += 1
    }
    state.wake()
  }

  const stop = () => {
    state.isOver = true
    state.wake()
  }
  signal.addEventListener('abort', stop, { once: true })
  const { from, leave } = await hub.join(hear)
  try {
    state.position = after === undefined ? from : Math.min(after, await context.store.read(lastEventId))
    while (!state.isOver) {
      if (state.waiting > 0) {
        const row = inbox.first()
        inbox.drop()
        state.waiting -= 1
        if (row && int(row, 'id') > state.position) yield pass(row)
      } else if (state.isLate && filter) yield* replay(filter)
      else
        await new Promise<void>((resolve) => {
          state.wake = resolve
        })
    }
  } finally {
    leave()
    signal.removeEventListener('abort', stop)
  }

  /** New events wait from before the last look on, so none comes in between. */
  async function* replay(wanted: EventFilter): AsyncGenerator<ControlEvent> {
    state.isLate = false
    for (;;) {
      const range = { filter: wanted, after: state.position, limit: rowsAtOnce }
      const rows = await context.store.read(() => readEvents(range))
      for (const row of rows) {
        if (state.isOver) return
        yield pass(row)
      }
      if (rows.length < rowsAtOnce) return
    }
  }

  function pass(row: Row): ControlEvent {
    state.position = int(row, 'id')
    return eventOf(row)
  }
}

/** A stream that is open must not outlive the credential it was opened with. */
function isRevoked(caller: Caller, row: Row): boolean {
  if (caller.kind === 'operator') return row.type === 'operator.revoked' && object(row, 'data').id === caller.id
  if (row.type !== 'key.revoked' && row.type !== 'agent.removed') return false
  return caller.kind !== 'seed' && row.agent_id === caller.id
}
