/** Adds up what the model calls of a run used. */

import type { FailureCode, Usage } from './event.ts'
import type { ProviderFailure } from './port.ts'

/** The sum has a cost only as long as the cost of every call is known. */
export function addUsage(sum: Usage | undefined, { estimated: _, ...usage }: Usage): Usage {
  if (sum === undefined) return usage
  const { costMicros } = usage
  const known = sum.costMicros !== undefined && costMicros !== undefined
  const cached = (sum.cachedInputTokens ?? 0) + (usage.cachedInputTokens ?? 0)
  const written = (sum.cacheWriteTokens ?? 0) + (usage.cacheWriteTokens ?? 0)
  return {
    inputTokens: sum.inputTokens + usage.inputTokens,
    outputTokens: sum.outputTokens + usage.outputTokens,
    ...(cached > 0 ? { cachedInputTokens: cached } : {}),
    ...(written > 0 ? { cacheWriteTokens: written } : {}),
    ...(known ? { costMicros: sum.costMicros + costMicros } : {}),
  }
}

/** Returns how much of what was sent the provider read from its cache, from 0 to 1 with three digits. */
export function cachedShare({ inputTokens, cachedInputTokens = 0 }: Pick<Usage, 'inputTokens' | 'cachedInputTokens'>): number {
  return inputTokens > 0 ? Math.round((cachedInputTokens / inputTokens) * 1000) / 1000 : 0
}

/** Corrects token counts, because any provider may report them: whole, not negative, small enough to be added up. */
export function sanitizeUsage({ inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, costMicros, estimated }: Usage): Usage {
  return {
    inputTokens: count(inputTokens),
    outputTokens: count(outputTokens),
    ...(cachedInputTokens === undefined ? {} : { cachedInputTokens: count(cachedInputTokens) }),
    ...(cacheWriteTokens === undefined ? {} : { cacheWriteTokens: count(cacheWriteTokens) }),
    ...(costMicros === undefined ? {} : { costMicros: count(costMicros) }),
    ...(estimated ? { estimated } : {}),
  }
}

/**
 * Tells whether a failed call is free: it was refused before an answer began, or it never arrived. A timeout on the server's side may come
 * after the answer began.
 */
export function costsNothing({ code, detail: { status, unsent } }: ProviderFailure): boolean {
  return unsent === true || (status !== undefined && status !== 408 && status !== 504) || unbilled.has(code)
}

const unbilled: ReadonlySet<FailureCode> = new Set(['auth', 'rate_limit', 'bad_request', 'context_length', 'budget'])

const highest = 1e12

function count(value: number): number {
  return value > 0 ? Math.min(Math.ceil(value), highest) : 0
}
