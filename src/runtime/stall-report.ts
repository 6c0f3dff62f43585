/** Who holds a stalled run back, in words for the error that ends it. */

import type { BlockedRequest } from '../kernel/select.ts'
import type { RunEvent } from './event.ts'

/** They only end what has already stalled. */
const enders = ['finisher', 'watchdog']

/**
 * `blocked` as it stands when `stalled` has just been selected: what follows it answers the requests that were stuck.
 * @returns such as `act is blocked by rule.no-push`, or the empty text when nobody blocks anything.
 */
export function heldBy(blocked: readonly BlockedRequest<RunEvent>[]): string {
  const told = blocked.flatMap(({ event, by }) => {
    const names = by.filter((name) => !enders.includes(name))
    return names.length > 0 ? [`${event.type} is blocked by ${names.join(', ')}`] : []
  })
  return [...new Set(told)].join('; ')
}
