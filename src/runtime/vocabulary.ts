/** Lists every type of event that a run can contain. */

import type { RunEvent } from './event.ts'
import { externalTypes } from './external-types.ts'

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
