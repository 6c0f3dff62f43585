/** Serves the budgets: their limits to operators, reservations and settlements to runs. */

import type { BudgetPlane } from '../../contract/plane.ts'
import { onlyOperator, onlyRun } from '../../contract/rights.ts'
import { assertBelievable } from '../budget/believable.ts'
import { remainingFor } from '../budget/reservations.ts'
import { settleTokens } from '../budget/settle.ts'
import { shortageRefusal } from '../budget/shortage.ts'
import { numberOf, type PlaneContext } from '../context.ts'
import { readBudget } from './budget-view.ts'
import { changeBudget } from './change-budget.ts'
import { readLedger } from './read-ledger.ts'
import { reserveOrBlock } from './reserve-or-block.ts'

export function createBudgetPlane(context: PlaneContext): BudgetPlane {
  const { store } = context
  return {
    async get(caller) {
      onlyOperator(caller, 'read the budget')
      return await store.read(() => readBudget(context))
    },
    async set(caller, patch) {
      const operator = onlyOperator(caller, 'change the budget')
      return await store.write(() => changeBudget(context, { operator, patch }))
    },
    async ledger(caller, query) {
      onlyOperator(caller, 'read the ledger')
      return await store.read(() => readLedger(query))
    },
    async remaining(caller) {
      const { id, role, taskId } = onlyRun(caller, 'ask for its budget')
      return await store.read(() => remainingFor(context, { role, agentId: id, taskId: numberOf(taskId) }))
    },
    async reserve(caller, request) {
      const run = onlyRun(caller, 'reserve tokens')
      const reserved = await store.write(() => reserveOrBlock(context, { caller: run, request }))
      if (!reserved.ok) throw shortageRefusal(reserved.shortage)
      return reserved.reservation
    },
    async settle(caller, request) {
      const run = onlyRun(caller, 'settle tokens')
      await assertBelievable(context, { caller, agentId: run.id, tokens: request.tokens, reservation: request.reservation_id })
      return await store.write(() => settleTokens(context, { caller: run, request }))
    },
  }
}
