/** Says which budget has too little left, and whether waiting helps. */

import { PlaneRefusal } from '../../contract/plane-refusal.ts'

export type Shortage = {
  /** `task`, `agent:NAME`, `role:NAME` or `*`. */
  readonly scope: string
  readonly limit: number
  readonly spent: number
  readonly reserved: number
  readonly asked: number
  /** For the budgets of a day. */
  readonly nextDayAt?: number
}

/**
 * `soon`: only open reservations are in the way, so the same request may be granted in a moment. `too_much`: more than the limit itself, while
 * something is left. `spent`: nothing helps but the next day or a higher limit: the task waits for that.
 */
export type ShortageKind = 'soon' | 'too_much' | 'spent'

export function shortageKind({ limit, spent, reserved, asked }: Shortage): ShortageKind {
  if (asked > limit && spent + reserved < limit) return 'too_much'
  return spent + asked <= limit ? 'soon' : 'spent'
}

const advice: { readonly [K in ShortageKind]: string } = {
  soon: 'calls that are under way hold the rest; ask again in a moment',
  too_much: 'ask for fewer tokens, or raise the limit',
  spent: 'the task waits until the limit is raised or the next day begins',
}

const retryMs = 1_000

export function shortageRefusal(shortage: Shortage): PlaneRefusal {
  const { scope, limit, spent, reserved, asked, nextDayAt } = shortage
  const kind = shortageKind(shortage)
  const remaining = Math.max(0, limit - spent - reserved)
  const message = `${asked} tokens are more than the ${remaining} left of ${limit} ${nameOf(scope)}; ${advice[kind]}`
  return new PlaneRefusal('budget_exceeded', message, {
    ...{ scope, limit, spent, reserved, remaining, asked, shortage: kind },
    ...(nextDayAt === undefined ? {} : { next_day_at: new Date(nextDayAt).toISOString() }),
    ...(kind === 'soon' ? { retry_after_ms: retryMs } : {}),
  })
}

function nameOf(scope: string): string {
  if (scope === '*') return 'for all agents today'
  if (scope === 'task') return 'for this task'
  const [kind, ...name] = scope.split(':')
  return `for ${kind} ${name.join(':')} today`
}
