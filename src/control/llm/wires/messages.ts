/** Describes POST messages of Anthropic's API. */

import { errorBody } from '../vendor-error.ts'
import { countOf, type Fields, fieldsOf, noteCounts, noteText, type Wire } from './wire.ts'

/** The vendor takes no fewer for thinking, and an answer must be longer than its thinking. */
const leastThinking = 1024

export const anthropicMessages: Wire = {
  vendor: 'anthropic',
  path: '/messages',
  asked(body) {
    return { stream: body.stream === true, output: countOf(body.max_tokens) || undefined, answers: 1, wantsCounts: true }
  },
  limited(body, output) {
    const thinking = fieldsOf(body.thinking)
    const budget = countOf(thinking.budget_tokens)
    if (budget === 0 || budget < output) return { ...body, max_tokens: output }
    if (output < 2 * leastThinking) return undefined
    return { ...body, max_tokens: output, thinking: { ...thinking, budget_tokens: Math.floor(output / 2) } }
  },
  note(seen, value) {
    const { type, message, usage, delta, content_block, content } = value
    const counts = totalOf(fieldsOf(type === 'message_start' ? fieldsOf(message).usage : usage))
    noteCounts(seen, counts)
    if (type === 'message') noteText(seen, content)
    if (type === 'content_block_start') noteText(seen, content_block)
    if (type === 'content_block_delta') noteText(seen, delta)
    if ((type === 'message' || type === 'message_delta') && counts.output > 0 && seen.input > 0) seen.whole = true
  },
  isLast: (_, { type }) => type === 'message_stop' || type === 'error',
  isExtra: () => false,
  stopped: (failure) => `event: error\ndata: ${JSON.stringify(errorBody('anthropic', failure))}\n\n`,
}

/** What the vendor did before the answer, such as making the request shorter, stands in a list beside the counts of the answer alone. */
function totalOf(usage: Fields): { readonly input: number; readonly output: number } {
  const parts = (Array.isArray(usage.iterations) ? usage.iterations : []).map(fieldsOf)
  const sum = (counted: (one: Fields) => number) => parts.reduce((all, part) => all + counted(part), 0)
  const outputIn = ({ output_tokens }: Fields) => countOf(output_tokens)
  return { input: Math.max(inputOf(usage), sum(inputOf)), output: Math.max(outputIn(usage), sum(outputIn)) }
}

/** The vendor counts what comes from the cache, or goes into it, apart. */
function inputOf({ input_tokens, cache_creation_input_tokens, cache_read_input_tokens }: Fields): number {
  return countOf(input_tokens) + countOf(cache_creation_input_tokens) + countOf(cache_read_input_tokens)
}
