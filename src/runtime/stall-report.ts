/** Who holds a stalled run back, in words for the error that ends it. */

import { type BlockedRequest, label } from '../kernel/select.ts'
import type { RunEvent } from './event.ts'

/** They only end what has already stalled. */
const enders = ['finisher', 'watchdog']

/**
 * `blocked` as it stands when `stalled` has just been selected: what follows it answers the requests that were stuck.
 * @returns such as `act is blocked by rule.no-push`, or the empty text when nobody blocks anything.
 */
export function blockersOf(blocked: readonly BlockedRequest<RunEvent>[]): string {
  const told = blocked.flatMap(({ event, by }) => {
    const names = by.filter((name) => !enders.includes(name))
    return names.length > 0 ? [`${typeOf(event)} is blocked by ${names.join(', ')}`] : []
  })
  return [...new Set(told)].join('; ')
}

/** As messages call an event: `act#call_1`, `user.tests-passed`. */
export function eventName(event: RunEvent): string {
  return event.type === 'user' ? typeOf(event) : label(event)
}

function typeOf(event: RunEvent): string {
  return event.type === 'user' ? String(event.event.type) : event.type
}
