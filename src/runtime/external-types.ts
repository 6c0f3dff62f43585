/** The events that only the world outside may send. */

import type { ExternalEvent } from './event.ts'

/** One entry for each: a type that is added and forgotten here does not compile. */
export const externalTypes: { readonly [type in ExternalEvent['type']]: true } = {
  'run.start': true,
  'model.done': true,
  'model.fail': true,
  'tool.done': true,
  'approval.decision': true,
  'check.done': true,
  cancel: true,
  estop: true,
  clock: true,
  'mode.set': true,
  'thread.add': true,
  judged: true,
}
