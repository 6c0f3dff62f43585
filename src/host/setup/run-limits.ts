/** The limits of a run, from the configuration. */

import type { Config } from '../../config/config.ts'
import type { Provider } from '../../runtime/port.ts'
import type { RunLimits } from '../../runtime/program.ts'
import type { ShellTimes } from '../../tools/tool-kind.ts'

export function runLimits({ limits }: Config): RunLimits {
  const { maxToolRounds, maxSameResults, maxParallel, maxRunSeconds, maxRunTokens, maxRunUsd } = limits
  return {
    maxToolRounds,
    ...(maxSameResults === undefined ? {} : { maxSameResults }),
    maxParallel,
    ...(maxRunSeconds ? { maxMs: maxRunSeconds * 1000 } : {}),
    ...(maxRunTokens ? { maxTokens: maxRunTokens } : {}),
    ...(maxRunUsd === undefined ? {} : { maxMicros: Math.round(maxRunUsd * 1_000_000) }),
  }
}

/** The most that goes along where nobody set `limits.context_tokens`. */
const usualHistory = 128_000

/**
 * How many tokens of the earlier conversation go along. A quarter of the model's window is left for the question, the tools and the answer;
 * a provider that does not know its window says 0.
 */
export function historyTokens({ limits }: Config, provider: Provider): number {
  if (limits.contextTokens !== undefined) return limits.contextTokens
  const { contextTokens: window } = provider.capabilities()
  return window === 0 ? usualHistory : Math.min(usualHistory, Math.floor(window * 0.75))
}

/** A command may always ask for the usual time, also where its maximum is set below that. */
export function shellTimesOf({ shellTimeoutS, shellTimeoutMaxS }: Config['limits']): ShellTimes {
  return { usualS: shellTimeoutS, longestS: Math.max(1, Math.floor(Math.max(shellTimeoutS, shellTimeoutMaxS))) }
}
