/** Reserves tokens for a run, or ends the run when its budget is used up: then its task waits for the next day or a higher limit. */

import { signatureOf } from '../../contract/caller.ts'
import type { Command } from '../../contract/store-port.ts'
import { type Reserved, type Reserving, reserveTokens } from '../budget/reserve.ts'
import { shortageKind, shortageRefusal } from '../budget/shortage.ts'
import { numberOf, type PlaneContext } from '../context.ts'
import { blockTask } from '../tasks/end-task.ts'

/** What other calls of the run have reserved counts as spent when the run ends here. */
export function* reserveOrBlock(context: PlaneContext, reserving: Reserving): Command<Reserved> {
  const reserved = yield* reserveTokens(context, reserving)
  // Otherwise a moment or a smaller request helps.
  if (reserved.ok || shortageKind(reserved.shortage) !== 'spent') return reserved
  const { message } = shortageRefusal(reserved.shortage)
  const by = { actor: signatureOf(reserving.caller), error: message }
  yield* blockTask(context, numberOf(reserving.caller.taskId), 'budget_blocked', null, by)
  return reserved
}
