/** Reserves and settles tokens of a run as a test, and reads what the tables say was spent. */

import type { Row } from '../../../src/control/contract/store-port.ts'
import type { MoneyPlane, RunOf } from './money-plane.ts'
import { anna } from './task-plane.ts'

export const reserve = (plane: MoneyPlane, { caller }: RunOf, tokens: number) => plane.budget.reserve(caller, { tokens, purpose: 'test' })
export const settle = (plane: MoneyPlane, { caller }: RunOf, id: string, tokens: number) =>
  plane.budget.settle(caller, { reservation_id: id, tokens, model: 'echo' })
export const number = (row: Row | undefined, column: string) => Number(row?.[column] ?? 0)

export const statusOf = async (plane: MoneyPlane, id: string) => (await plane.tasks.get(anna, id)).status

/** spent + reserved of a scope today. */
export async function usedBy(plane: MoneyPlane, scope: string): Promise<readonly [number, number]> {
  const [row] = await plane.rows('SELECT SUM(spent) AS spent, SUM(reserved) AS reserved FROM budget_days WHERE scope = ?', [scope])
  return [number(row, 'spent'), number(row, 'reserved')]
}

export const ledgerSum = async (plane: MoneyPlane) =>
  number((await plane.rows('SELECT COALESCE(SUM(tokens), 0) AS value FROM ledger'))[0], 'value')
