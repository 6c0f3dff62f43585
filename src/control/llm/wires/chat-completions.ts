/** Describes POST chat/completions of OpenAI's API, which most servers of models speak. */

import { HttpError } from '../../../http/http-error.ts'
import { isObject } from '../../../kit/json.ts'
import { errorBody } from '../vendor-error.ts'
import { countOf, type Fields, fieldsOf, noteCounts, noteText, outputOf, type Wire } from './wire.ts'

/** OpenAI's newer models refuse `max_tokens`; many other servers know nothing else. */
function limitName(body: Fields, address: string): string {
  if (body.max_completion_tokens !== undefined && body.max_completion_tokens !== null) return 'max_completion_tokens'
  if (body.max_tokens !== undefined && body.max_tokens !== null) return 'max_tokens'
  return URL.parse(address)?.hostname === 'api.openai.com' ? 'max_completion_tokens' : 'max_tokens'
}

/** As many as OpenAI's API allows. */
const mostAnswers = 128

/** @throws HttpError 400 for a number that vendors read in different ways */
function answersOf(name: string, n: unknown, most: number): number {
  if (n === undefined || n === null) return 1
  if (typeof n === 'number' && Number.isInteger(n) && n >= 1 && n <= most) return n
  throw new HttpError(400, 'unsupported_parameter', `${name}: ${JSON.stringify(n).slice(0, 80)} is no whole number from 1 to ${most}`)
}

export const chatCompletions: Wire = {
  vendor: 'openai',
  path: '/chat/completions',
  asked(body) {
    // Some servers write so many answers and show the best of them.
    answersOf('best_of', body.best_of, 1)
    return {
      stream: body.stream === true,
      output: countOf(body.max_completion_tokens) || countOf(body.max_tokens) || undefined,
      answers: answersOf('n', body.n, mostAnswers),
      wantsCounts: fieldsOf(body.stream_options).include_usage === true,
    }
  },
  limited(body, output, address) {
    // A server that knows another limit would obey that one.
    const { max_tokens: _, max_completion_tokens: _new, n_predict: _own, ...rest } = body
    const counts = body.stream === true ? { stream_options: { ...fieldsOf(body.stream_options), include_usage: true } } : {}
    return { ...rest, [limitName(body, address)]: output, ...counts }
  },
  note(seen, { usage, choices }) {
    const counts = fieldsOf(usage)
    const input = countOf(counts.prompt_tokens)
    noteCounts(seen, { input, output: outputOf(counts, { input: 'prompt_tokens', output: 'completion_tokens' }) })
    const all = (Array.isArray(choices) ? choices : []).map(fieldsOf)
    for (const { delta, message } of all) noteText(seen, delta ?? message)
    // Some servers count in each chunk; only an answer that ends has the final count.
    if (input > 0 && all.every(hasEnded)) seen.whole = true
  },
  isLast: (data) => data === '[DONE]',
  isExtra: ({ choices, usage }, { wantsCounts }) => !wantsCounts && isObject(usage) && Array.isArray(choices) && choices.length === 0,
  stopped: (failure) => `data: ${JSON.stringify(errorBody('openai', failure))}\n\n`,
}

function hasEnded({ message, finish_reason }: Fields): boolean {
  return message !== undefined || typeof finish_reason === 'string'
}
