/** Describes POST responses of OpenAI's API. */

import { HttpError } from '../../../http/http-error.ts'
import { countOf, type Fields, fieldsOf, noteCounts, noteText, outputOf, type Wire } from './wire.ts'

/** Present, these move a part of the input or of the work out of the request, where nobody can count it beforehand. */
const unmetered: { readonly [name: string]: string } = {
  background: 'an answer that goes on without a connection cannot be metered',
  previous_response_id: 'the earlier answer would be input that is not in the request; send the whole input',
  conversation: 'the conversation would be input that is not in the request; send the whole input',
  prompt: 'the stored prompt would be input that is not in the request; send the whole input',
}

const ends: readonly unknown[] = ['response.completed', 'response.incomplete', 'response.failed']

export const openAiResponses: Wire = {
  vendor: 'openai',
  path: '/responses',
  asked(body) {
    for (const [name, why] of Object.entries(unmetered))
      if (body[name] !== undefined && body[name] !== null && body[name] !== false)
        throw new HttpError(400, 'unsupported_parameter', `${name}: ${why}`)
    return { stream: body.stream === true, output: countOf(body.max_output_tokens) || undefined, answers: 1, wantsCounts: true }
  },
  /** The API takes no fewer than 16. */
  limited: (body, output) => (output < 16 ? undefined : { ...body, max_output_tokens: output }),
  note(seen, value) {
    const response = value.object === 'response' ? value : fieldsOf(value.response)
    const usage = fieldsOf(response.usage)
    const input = countOf(usage.input_tokens)
    noteCounts(seen, { input, output: outputOf(usage, { input: 'input_tokens', output: 'output_tokens' }) })
    if (value.object === 'response') noteText(seen, value.output)
    if (typeof value.type === 'string' && value.type.endsWith('.delta')) noteText(seen, value.delta)
    if (input > 0 && isWhole(value)) seen.whole = true
  },
  isLast: (_, { type }) => ends.includes(type) || type === 'error',
  isExtra: () => false,
  stopped({ code, message }) {
    const response = { id: 'resp_stopped', object: 'response', status: 'failed', error: { code, message }, output: [], usage: null }
    return `event: response.failed\ndata: ${JSON.stringify({ type: 'response.failed', response })}\n\n`
  },
}

function isWhole({ object, type }: Fields): boolean {
  return object === 'response' || ends.includes(type)
}
