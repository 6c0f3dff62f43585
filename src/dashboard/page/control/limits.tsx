/** Changes a limit of a day after a question, and says which limits are used up. */

import type { Budget, BudgetPatch } from '../../../control/contract/fleet-shapes.ts'
import { whole } from '../parts/fields.tsx'
import { doing } from './actions.tsx'
import { budget } from './control-state.ts'
import { plane } from './net/plane.ts'
import { confirmed } from './parts/ask.tsx'
import { tokensOf } from './parts/bits.tsx'

/** A limit that is used up: of a role, or of all of them. */
export type SpentLimit = { readonly role?: string; readonly limit: number; readonly spent: number }

/** `role`: absent for the limit of all. `after`: null takes the limit away. */
export async function changeLimit(now: Budget, role: string | undefined, after: number | null): Promise<boolean> {
  const name = role ?? 'All roles'
  const before = (role === undefined ? now.daily_tokens : now.roles[role]?.limit) ?? null
  if (before === after) return false
  const isRaised = after === null || (before !== null && after > before)
  const spent = role === undefined ? now.spent_today : (now.roles[role]?.spent ?? 0)
  const body = (
    <>
      <p>
        {name}: from <strong>{tokensOf(before)}</strong> to <strong>{tokensOf(after)}</strong> a day. Spent today: {whole(spent)}.
      </p>
      {after !== null && after <= spent && <p class="over">That is no more than was spent already: the agents stop at once.</p>}
    </>
  )
  const act = isRaised ? 'Raise the limit' : 'Lower the limit'
  if (!(await confirmed({ title: `${act}?`, body, act, isDangerous: !isRaised }))) return false
  return doing(`${name}: ${tokensOf(after)} tokens a day`, async () => {
    budget.value = await plane<Budget>('PUT', 'budget', patchOf(now, role, after))
  })
}

function patchOf({ allocation }: Budget, role: string | undefined, tokens: number | null): BudgetPatch {
  if (role === undefined) return { daily_tokens: tokens }
  const { [role]: _, ...others } = allocation
  return { allocation: tokens === null ? others : { ...others, [role]: tokens } }
}

/** A limit of 0 is used up on purpose. */
export function spentLimits({ daily_tokens, spent_today, roles }: Budget): readonly SpentLimit[] {
  const all = [
    { limit: daily_tokens, spent: spent_today },
    ...Object.entries(roles).map(([role, { limit, spent }]) => ({ role, limit, spent })),
  ]
  return all.flatMap(({ limit, ...each }) => (limit !== null && limit > 0 && each.spent >= limit ? [{ ...each, limit }] : []))
}

/** Half a day more than was spent, in round numbers. */
export function raised({ limit, spent }: SpentLimit): number {
  const least = spent + limit / 2
  const step = 10 ** Math.max(0, Math.floor(Math.log10(least)) - 1)
  return Math.min(1e12, Math.ceil(least / step) * step)
}
