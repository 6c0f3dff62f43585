/** Changes the limits, and wakes the tasks that waited for more. */

import { type Caller, signatureOf } from '../../contract/caller.ts'
import type { Budget, BudgetPatch } from '../../contract/fleet-shapes.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command } from '../../contract/store-port.ts'
import { isTimeZone } from '../budget/budget-day.ts'
import { readBudgetSettings, writeBudgetSettings } from '../budget/budget-settings.ts'
import type { PlaneContext } from '../context.ts'
import { recordEvent } from '../events/record-event.ts'
import { readBudget } from './budget-view.ts'
import { wakeBlocked } from './wake-blocked.ts'

/** A limit may be set below what is spent: then nothing more is reserved. @throws PlaneRefusal bad_request for an unknown zone */
export function* changeBudget(
  context: PlaneContext,
  { operator, patch }: { readonly operator: Caller; readonly patch: BudgetPatch },
): Command<Budget> {
  if (patch.timezone !== undefined && !isTimeZone(patch.timezone))
    throw new PlaneRefusal('bad_request', `timezone "${patch.timezone}" is no time zone; write one like Europe/Ljubljana or UTC`)
  const before = yield* readBudgetSettings()
  const settings = { ...before, ...patch }
  yield* writeBudgetSettings(settings)
  const actor = signatureOf(operator)
  yield* recordEvent(context, { type: 'budget.changed', actor, data: { before, after: settings } })
  yield* wakeBlocked(context, actor)
  return yield* readBudget(context)
}
