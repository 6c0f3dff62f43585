/** Lists every type of event that a run can contain. */

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
