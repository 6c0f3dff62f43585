/** What a turn used, in words for the person at the terminal. */

import type { Usage } from '../../runtime/event.ts'

/** `1,234 tokens in, 56 out, $0.0021`; undefined when nothing was used, as with the offline helper. */
export function usageLine(usage: Usage | undefined): string | undefined {
  if (usage === undefined || usage.inputTokens + usage.outputTokens === 0) return undefined
  const { inputTokens, outputTokens, costMicros } = usage
  const money = costMicros === undefined ? '' : `, ${dollars(costMicros)}`
  return `${counted(inputTokens)} ${inputTokens === 1 ? 'token' : 'tokens'} in, ${counted(outputTokens)} out${money}`
}

function counted(tokens: number): string {
  return tokens.toLocaleString('en')
}

/** To the hundredth of a cent below a dollar, to the cent from there on. */
function dollars(micros: number): string {
  const whole = micros / 1_000_000
  return micros > 0 && micros < 100 ? 'less than $0.0001' : `$${whole.toFixed(whole < 1 ? 4 : 2)}`
}
