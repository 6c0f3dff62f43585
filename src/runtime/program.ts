/** The agent program: every behaviour of a run, in one list. Adding a thread that only blocks can never permit more. */

import type { AnyThread } from '../kernel/thread.ts'
import { approval } from './behaviours/approval.ts'
import { type BudgetLimits, budget } from './behaviours/budget.ts'
import { calls } from './behaviours/calls.ts'
import { cancel, estop } from './behaviours/estop.ts'
import { finisher } from './behaviours/finisher.ts'
import { limits } from './behaviours/limits.ts'
import { loop } from './behaviours/loop.ts'
import { modes } from './behaviours/modes.ts'
import { parallel } from './behaviours/parallel.ts'
import { safety } from './behaviours/safety.ts'
import { watchdog } from './behaviours/watchdog.ts'
import type { RunEvent } from './event.ts'

export type RunLimits = BudgetLimits & { readonly maxToolRounds: number; readonly maxParallel: number }

export function program(run: RunLimits): AnyThread<RunEvent>[] {
  return [estop, cancel, modes, safety, limits(run), budget(run), approval, parallel(run), calls, loop, finisher, watchdog]
}
