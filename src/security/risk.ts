/** Rates how risky a call is: each touch has a risk, and the highest one counts for the call. */

import type { Risk } from '../runtime/event.ts'
import type { Access } from './targets/path.ts'

export type Rating = { readonly risk: Risk; readonly reason: string }

const order: readonly Risk[] = ['low', 'medium', 'high']

/** @returns the riskiest rating with its reason; among equals, the first */
export function highest(first: Rating, rest: readonly Rating[]): Rating {
  let top = first
  for (const next of rest) if (order.indexOf(next.risk) > order.indexOf(top.risk)) top = next
  return top
}

/** Reading inside the workspace is low, writing there medium. Outside, where workspace_only allows it at all, each is one step higher. */
export function pathRisk({ access, inside }: { access: Access; inside: boolean }): Rating {
  if (access === 'read')
    return inside ? { risk: 'low', reason: 'reads the workspace' } : { risk: 'medium', reason: 'reads outside the workspace' }
  return inside ? { risk: 'medium', reason: 'writes to workspace' } : { risk: 'high', reason: 'writes outside the workspace' }
}
