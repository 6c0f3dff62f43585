/** Computes token counts and their price, and estimates cautiously where a server counts nothing, so that a budget stays complete. */

import type { Usage } from '../../runtime/event.ts'
import type { Prices } from './provider-settings.ts'

/** The counts that a server reported; the vendor libraries' own shape fits. */
export type Reported = {
  readonly inputTokens: { readonly total: number | undefined; readonly cacheRead: number | undefined }
  readonly outputTokens: { readonly total: number | undefined }
}

type Counted = {
  readonly reported: Reported | undefined
  /** UTF-8 bytes sent and received, for the estimate. */
  readonly sentBytes: number
  readonly gotBytes: number
  readonly prices?: Prices
}

export function usageOf(counted: Counted): Omit<Usage, 'estimated'> & { readonly estimated: boolean } {
  const { reported, prices } = counted
  const inputs = tokens(reported?.inputTokens.total)
  const outputs = tokens(reported?.outputTokens.total)
  // A server without token counts reports nothing or zero, and every prompt has tokens.
  const estimated = inputs === undefined || inputs === 0
  const inputTokens = estimated ? Math.ceil(counted.sentBytes / 4) : inputs
  const outputTokens = estimated || outputs === undefined || outputs === 0 ? Math.ceil(counted.gotBytes / 4) : outputs
  const cached = Math.min(tokens(reported?.inputTokens.cacheRead) ?? 0, inputTokens)
  return { ...priced({ inputTokens, outputTokens, ...(cached > 0 ? { cachedInputTokens: cached } : {}) }, prices), estimated }
}

/** @returns the same counts, with their cost where the prices are known */
export function priced(usage: Usage, prices: Prices | undefined): Usage {
  const { inputTokens, outputTokens, cachedInputTokens: cached = 0 } = usage
  const costMicros = cost({ inputTokens, outputTokens, cached, prices })
  return costMicros === undefined ? usage : { ...usage, costMicros }
}

/** Dollars per million tokens equal millionths of a dollar per token. */
function cost(at: { inputTokens: number; outputTokens: number; cached: number; prices?: Prices }): number | undefined {
  const { input, output, cached = input } = at.prices ?? {}
  if (input === undefined || output === undefined || cached === undefined) return undefined
  return Math.ceil((at.inputTokens - at.cached) * input + at.cached * cached + at.outputTokens * output)
}

function tokens(count: number | undefined): number | undefined {
  return count !== undefined && Number.isFinite(count) ? Math.max(0, Math.round(count)) : undefined
}
