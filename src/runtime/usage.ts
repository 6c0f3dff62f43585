/** Adds up what the model calls of a run used. */

import type { Usage } from './event.ts'

/** The sum has a cost only as long as the cost of every call is known. */
export function addUsage(sum: Usage | undefined, { inputTokens, outputTokens, costMicros }: Usage): Usage {
  if (sum === undefined) return { inputTokens, outputTokens, ...(costMicros === undefined ? {} : { costMicros }) }
  const known = sum.costMicros !== undefined && costMicros !== undefined
  return {
    inputTokens: sum.inputTokens + inputTokens,
    outputTokens: sum.outputTokens + outputTokens,
    ...(known ? { costMicros: sum.costMicros + costMicros } : {}),
  }
}

/** Corrects token counts, because any provider may report them: whole, not negative, small enough to be added up. */
export function sanitizeUsage({ inputTokens, outputTokens, cachedInputTokens, costMicros }: Usage): Usage {
  return {
    inputTokens: count(inputTokens),
    outputTokens: count(outputTokens),
    ...(cachedInputTokens === undefined ? {} : { cachedInputTokens: count(cachedInputTokens) }),
    ...(costMicros === undefined ? {} : { costMicros: count(costMicros) }),
  }
}

const highest = 1e12

function count(value: number): number {
  return value > 0 ? Math.min(Math.ceil(value), highest) : 0
}
