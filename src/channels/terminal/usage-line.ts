/** Describes the usage of a turn for the person at the terminal. */

import type { Usage } from '../../runtime/event.ts'
import { cachedShare } from '../../runtime/usage.ts'

/** Formats `1,234 tokens in (60% cached), 56 out, $0.0021`; undefined when nothing was used, as with the offline helper. */
export function usageLine(usage: Usage | undefined): string | undefined {
  if (usage === undefined || usage.inputTokens + usage.outputTokens === 0) return undefined
  const { inputTokens, outputTokens, costMicros } = usage
  const money = costMicros === undefined ? '' : `, ${dollars(costMicros)}`
  const cached = usage.cachedInputTokens ? ` (${Math.round(cachedShare(usage) * 100)}% cached)` : ''
  return `${counted(inputTokens)} ${inputTokens === 1 ? 'token' : 'tokens'} in${cached}, ${counted(outputTokens)} out${money}`
}

function counted(tokens: number): string {
  return tokens.toLocaleString('en')
}

/** Rounds to a hundredth of a cent below one dollar, and to a cent from one dollar up. */
function dollars(micros: number): string {
  const whole = micros / 1_000_000
  return micros > 0 && micros < 100 ? 'less than $0.0001' : `$${whole.toFixed(whole < 1 ? 4 : 2)}`
}
