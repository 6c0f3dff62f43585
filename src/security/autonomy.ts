/** Decides what a rated call that no policy forbids may do at each of the three levels of autonomy. */

import type { Policy } from './policy.ts'
import type { Rating } from './risk.ts'
import type { RuleName } from './rules.ts'

export type Rated = {
  readonly rating: Rating
  /** The call writes and sends nothing. */
  readonly reads: boolean
  /** Whether the command only looks (pwd, ls); undefined when the call has no command. */
  readonly harmless?: boolean
  /** The operator approved this command with "always". */
  readonly always: boolean
}

export type Permission = { readonly verdict: 'allow' | 'ask' | 'deny'; readonly rule: RuleName; readonly reason: string }

export function permit(rated: Rated, policy: Pick<Policy, 'autonomy' | 'approveAllMedium'>): Permission {
  if (policy.autonomy === 'readonly') return readonly(rated)
  if (rated.rating.risk === 'low') return { verdict: 'allow', rule: 'autonomy.low', reason: rated.rating.reason }
  return policy.autonomy === 'full' ? { verdict: 'allow', rule: 'autonomy.full', reason: rated.rating.reason } : supervised(rated, policy)
}

/** A command is never rated low, so harmless commands have a branch of their own. */
function readonly({ rating, reads, harmless }: Rated): Permission {
  if (harmless && reads) return { verdict: 'allow', rule: 'autonomy.harmless', reason: rating.reason }
  if (rating.risk === 'low' && reads && harmless === undefined) return { verdict: 'allow', rule: 'autonomy.low', reason: rating.reason }
  const reason = `${rating.reason} (${rating.risk} risk); autonomy "readonly" only lets low-risk tools read. Answer without it, or ask the operator to change the level`
  return { verdict: 'deny', rule: 'autonomy.readonly', reason }
}

function supervised({ rating, always }: Rated, policy: Pick<Policy, 'approveAllMedium'>): Permission {
  if (rating.risk === 'high') {
    const reason = `${rating.reason} (high risk); autonomy "supervised" blocks that. Try a simpler, allow-listed way, or ask the operator to do it`
    return { verdict: 'deny', rule: 'autonomy.high_blocked', reason }
  }
  if (policy.approveAllMedium) return { verdict: 'allow', rule: 'autonomy.approve_all_medium', reason: rating.reason }
  if (always) return { verdict: 'allow', rule: 'autonomy.always', reason: rating.reason }
  return { verdict: 'ask', rule: 'autonomy.medium_asks', reason: rating.reason }
}
