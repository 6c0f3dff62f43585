/** What the model calls of a run used, added up. */

import type { Usage } from './event.ts'

/** The money is known as long as it is known of each. */
export function addUsage(sum: Usage | undefined, { inputTokens, outputTokens, costMicros }: Usage): Usage {
  if (sum === undefined) return { inputTokens, outputTokens, ...(costMicros === undefined ? {} : { costMicros }) }
  const known = sum.costMicros !== undefined && costMicros !== undefined
  return {
    inputTokens: sum.inputTokens + inputTokens,
    outputTokens: sum.outputTokens + outputTokens,
    ...(known ? { costMicros: sum.costMicros + costMicros } : {}),
  }
}
