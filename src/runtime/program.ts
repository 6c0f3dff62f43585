/** Lists every behaviour of a run. A thread that only blocks can never permit more. */

import type { AnyThread } from '../kernel/thread.ts'
import { approval } from './behaviours/approval.ts'
import { calls } from './behaviours/calls.ts'
import { cancel, estop } from './behaviours/estop.ts'
import { finisher } from './behaviours/finisher.ts'
import { type ChannelCap, channel } from './behaviours/guards/channel.ts'
import { egress } from './behaviours/guards/egress.ts'
import { type BudgetLimits, budget } from './behaviours/limits/budget.ts'
import { limits, parallel } from './behaviours/limits/limits.ts'
import { repetition } from './behaviours/limits/repetition.ts'
import { loop } from './behaviours/loop.ts'
import { proofOfDone } from './behaviours/proof-of-done.ts'
import { safety } from './behaviours/refusals.ts'
import { threadCalls } from './behaviours/thread-calls.ts'
import { watchdog } from './behaviours/watchdog.ts'
import { modes, wiggumGuard, wiggumLoop } from './behaviours/wiggum/wiggum-loop.ts'
import type { RunEvent } from './event.ts'

/** `maxSameResults` is absent in runs without that rule, and in older journals; `channel` in runs that no channel limits. */
export type RunLimits = BudgetLimits & {
  readonly maxToolRounds: number
  readonly maxSameResults?: number
  readonly maxParallel: number
  readonly channel?: ChannelCap
  /** The claims of the final answer need proof. */
  readonly requireProof?: true
}

export function program(run: RunLimits): AnyThread<RunEvent>[] {
  const { maxSameResults } = run
  const circles = maxSameResults === undefined ? [] : [repetition({ maxSameResults })]
  return [
    estop,
    cancel,
    modes,
    safety,
    ...(run.channel === undefined ? [] : [channel(run.channel)]),
    limits(run),
    budget(run),
    ...circles,
    wiggumGuard,
    egress,
    approval,
    parallel(run),
    threadCalls,
    calls,
    loop,
    wiggumLoop,
    ...(run.requireProof === true ? [proofOfDone] : []),
    finisher,
    watchdog,
  ]
}
