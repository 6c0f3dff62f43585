/** Lists the events that only the outside may send. */

import type { ExternalEvent } from './event.ts'

/** One entry per type: the compiler reports a new type that is missing here. */
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
