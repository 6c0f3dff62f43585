/** Serves events: pages of what happened, and streams of what happens. */

import type { EventPlane } from '../../contract/plane.ts'
import type { PlaneContext } from '../context.ts'
import { followEvents } from './event-feed.ts'
import { createEventHub } from './event-hub.ts'
import { eventOf, filterOf, readEvents } from './event-row.ts'

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
