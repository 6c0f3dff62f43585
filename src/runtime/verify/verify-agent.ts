/** `verifyAgent`: the model checker over the program with a developer's own threads in it. */

import type { JsonObject } from '../../kit/json.ts'
import { prepareThreads } from '../threads/prepare-thread.ts'
import type { AnyUserThread } from '../threads/thread.ts'
import { sentence } from './tell.ts'
import { type VerifyReport, verifyProgram } from './verify-program.ts'
import type { Sample } from './world.ts'

export type VerifyAgentOptions = {
  readonly threads: readonly AnyUserThread[]
  /** Calls that the threads look at: the hostile model of the checker asks for them, one and two at a time. */
  readonly calls?: readonly { readonly name: string; readonly input: JsonObject; readonly verdict?: Sample['verdict'] }[]
  /** How many rounds of calls are explored, 2 when absent, and after how many states a scene is cut off. */
  readonly bounds?: { readonly toolRounds?: number; readonly maxStates?: number }
}

/** `steps`: the shortest run that breaks the property, in words. */
export type AgentReport = Omit<VerifyReport, 'counterexample' | 'idleRules'> & {
  /** Threads that blocked nothing in any explored run: of them little was learned. */
  readonly idleThreads: readonly string[]
  readonly counterexample?: { readonly property: string; readonly steps: readonly string[]; readonly heldBack: readonly string[] }
}

/** @throws ThreadFailure when a thread is not fit to take part, or fails in a run that the checker tried */
export function verifyAgent({ threads, calls = [], bounds = {} }: VerifyAgentOptions): AgentReport {
  const prepared = prepareThreads(threads).map(({ thread }) => thread)
  const { counterexample, idleRules, ...report } = verifyProgram({ rules: prepared, samples: calls, bounds })
  if (counterexample === undefined) return { ...report, idleThreads: idleRules }
  const { property, steps, heldBack } = counterexample
  return { ...report, idleThreads: idleRules, counterexample: { property, steps: steps.map(sentence), heldBack } }
}
