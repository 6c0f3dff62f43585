/** The limits of a run, from the configuration. */

import type { Config } from '../../config/config.ts'
import type { RunLimits } from '../../runtime/program.ts'

export function runLimits({ limits }: Config): RunLimits {
  const { maxToolRounds, maxParallel, maxRunSeconds, maxRunTokens, maxRunUsd } = limits
  return {
    maxToolRounds,
    maxParallel,
    ...(maxRunSeconds ? { maxMs: maxRunSeconds * 1000 } : {}),
    ...(maxRunTokens ? { maxTokens: maxRunTokens } : {}),
    ...(maxRunUsd === undefined ? {} : { maxMicros: Math.round(maxRunUsd * 1_000_000) }),
  }
}
