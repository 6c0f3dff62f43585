/** Provides `verifyAgent`, which model-checks the program together with a developer's own threads. */

import type { JsonObject } from '../../kit/json.ts'
import { prepareThreads } from '../threads/prepare-thread.ts'
import type { AnyUserThread } from '../threads/thread.ts'
import { sentence } from './describe-trace.ts'
import { type VerifyReport, verifyProgram } from './verify-program.ts'
import type { Sample } from './world.ts'

export type VerifyAgentOptions = {
  readonly threads: readonly AnyUserThread[]
  /** Calls that the threads react to: the checker's hostile model requests them, one and two at a time. */
  readonly calls?: readonly { readonly name: string; readonly input: JsonObject; readonly verdict?: Sample['verdict'] }[]
  /** How many rounds of calls to explore, default 2, and after how many states to stop the search of a scene. */
  readonly bounds?: { readonly toolRounds?: number; readonly maxStates?: number }
}

/** `steps`: the shortest run that breaks the property, one sentence per step. */
export type AgentReport = Omit<VerifyReport, 'counterexample' | 'idleRules'> & {
  /** Threads that blocked nothing in any explored run; the result says little about them. */
  readonly idleThreads: readonly string[]
  readonly counterexample?: { readonly property: string; readonly steps: readonly string[]; readonly heldBack: readonly string[] }
}

/** @throws ThreadFailure when a thread is invalid, or fails in an explored run */
export function verifyAgent({ threads, calls = [], bounds = {} }: VerifyAgentOptions): AgentReport {
  const prepared = prepareThreads(threads).map(({ thread }) => thread)
  const { counterexample, idleRules, ...report } = verifyProgram({ rules: prepared, samples: calls, bounds })
  if (counterexample === undefined) return { ...report, idleThreads: idleRules }
  const { property, steps, heldBack } = counterexample
  return { ...report, idleThreads: idleRules, counterexample: { property, steps: steps.map(sentence), heldBack } }
}
