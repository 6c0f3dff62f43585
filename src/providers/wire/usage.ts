/** Computes token counts and their price, and estimates cautiously where a server counts nothing, so that a budget stays complete. */

import type { Usage } from '../../runtime/event.ts'
import type { Prices } from './facts/model-facts.ts'

/** The counts that a server reported; the vendor libraries' own shape fits. */
export type Reported = {
  readonly inputTokens: {
    readonly total: number | undefined
    readonly cacheRead: number | undefined
    readonly cacheWrite?: number | undefined
  }
  readonly outputTokens: { readonly total: number | undefined }
}

type Counted = {
  readonly reported: Reported | undefined
  /** The estimated tokens that were sent, and the UTF-8 bytes received. */
  readonly sentTokens: number
  readonly gotBytes: number
  readonly prices?: Prices
}

export function usageOf(counted: Counted): Omit<Usage, 'estimated'> & { readonly estimated: boolean } {
  const { reported, prices } = counted
  const inputs = tokens(reported?.inputTokens.total)
  const outputs = tokens(reported?.outputTokens.total)
  // A server without token counts reports nothing or zero, and every prompt has tokens.
  const estimated = inputs === undefined || inputs === 0
  const inputTokens = estimated ? counted.sentTokens : inputs
  const outputTokens = estimated || outputs === undefined || outputs === 0 ? Math.ceil(counted.gotBytes / 4) : outputs
  const cached = Math.min(tokens(reported?.inputTokens.cacheRead) ?? 0, inputTokens)
  const written = Math.min(tokens(reported?.inputTokens.cacheWrite) ?? 0, inputTokens - cached)
  const usage = {
    inputTokens,
    outputTokens,
    ...(cached > 0 ? { cachedInputTokens: cached } : {}),
    ...(written > 0 ? { cacheWriteTokens: written } : {}),
  }
  return { ...priced(usage, prices), estimated }
}

/** @returns the same counts, with their cost where the prices are known */
export function priced(usage: Usage, prices: Prices | undefined): Usage {
  const costMicros = cost(usage, prices)
  return costMicros === undefined ? usage : { ...usage, costMicros }
}

/** Dollars per million tokens equal millionths of a dollar per token. */
function cost(usage: Usage, { input, output, cached = input, cacheWrite = input }: Prices = {}): number | undefined {
  if (input === undefined || output === undefined || cached === undefined || cacheWrite === undefined) return undefined
  const { inputTokens, outputTokens, cachedInputTokens: read = 0, cacheWriteTokens: written = 0 } = usage
  return Math.ceil((inputTokens - read - written) * input + read * cached + written * cacheWrite + outputTokens * output)
}

function tokens(count: number | undefined): number | undefined {
  return count !== undefined && Number.isFinite(count) ? Math.max(0, Math.round(count)) : undefined
}
