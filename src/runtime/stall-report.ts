/** Names the threads that block a stalled run, for the error that ends it. */

import { type BlockedRequest, label } from '../kernel/select.ts'
import type { RunEvent } from './event.ts'

/** These threads only end a run that has already stalled. */
const enders = ['finisher', 'watchdog']

/**
 * `blocked` must be the state right after the selection of `stalled`; later events answer the requests that were stuck.
 * @returns for example `act is blocked by rule.no-push`, or the empty text if no thread blocks anything.
 */
export function blockersOf(blocked: readonly BlockedRequest<RunEvent>[]): string {
  const told = blocked.flatMap(({ event, by }) => {
    const names = by.filter((name) => !enders.includes(name))
    return names.length > 0 ? [`${typeOf(event)} is blocked by ${names.join(', ')}`] : []
  })
  return [...new Set(told)].join('; ')
}

/** Formats an event's name for messages: `act#call_1`, `user.tests-passed`. */
export function eventName(event: RunEvent): string {
  return event.type === 'user' ? typeOf(event) : label(event)
}

function typeOf(event: RunEvent): string {
  return event.type === 'user' ? String(event.event.type) : event.type
}
