/** Lists every type of event that a run can contain, and names events in messages. */

import { type BlockedRequest, label } from '../kernel/select.ts'
import type { ExternalEvent, RunEvent } from './event.ts'

/** The events that only the outside may send. One entry per type: the compiler reports a new type that is missing here. */
export const externalTypes: { readonly [type in ExternalEvent['type']]: true } = {
  'run.start': true,
  'model.done': true,
  'model.fail': true,
  'context.trimmed': true,
  'tool.done': true,
  'tool.changed': true,
  'approval.decision': true,
  'check.done': true,
  steer: true,
  cancel: true,
  estop: true,
  clock: true,
  'mode.set': true,
  'thread.add': true,
  judged: true,
}

/** One entry per type: the compiler reports a new type that is missing here. */
export const vocabulary: { readonly [type in RunEvent['type']]: true } = {
  ...externalTypes,
  think: true,
  propose: true,
  'gate.open': true,
  act: true,
  deny: true,
  apply: true,
  drop: true,
  observe: true,
  check: true,
  retry: true,
  halt: true,
  judge: true,
  user: true,
  stalled: true,
  finish: true,
}

export function isKnown(name: string): name is RunEvent['type'] {
  return Object.hasOwn(vocabulary, name)
}

/** These threads only end a run that has already stalled. */
const enders = ['finisher', 'watchdog']

/**
 * Names the threads that block a stalled run. `blocked` must be the state right after the selection of `stalled`; later events answer the
 * requests that were stuck. @returns for example `act is blocked by rule.no-push`, or the empty text if no thread blocks anything.
 */
export function blockersOf(blocked: readonly BlockedRequest<RunEvent>[]): string {
  const texts = blocked.flatMap(({ event, by }) => {
    const names = by.filter((name) => !enders.includes(name))
    return names.length > 0 ? [`${typeOf(event)} is blocked by ${names.join(', ')}`] : []
  })
  return [...new Set(texts)].join('; ')
}

/** Formats an event's name for messages: `act#call_1`, `user.tests-passed`. */
export function eventName(event: RunEvent): string {
  return event.type === 'user' ? typeOf(event) : label(event)
}

function typeOf(event: RunEvent): string {
  return event.type === 'user' ? String(event.event.type) : event.type
}
