/** ask_user: a question to the person at the other end, if there is one. */

import type { Schema } from '../../runtime/port.ts'
import { done, fail } from '../input.ts'
import type { ToolKind } from '../tool-kind.ts'

/** Undefined when the person gave no answer (end of input). Rejects or settles soon after the signal fires. */
export type Ask = (question: string, signal: AbortSignal) => Promise<string | undefined>

/** Without `ask` nobody is there. */
const parameters = {
  type: 'object',
  properties: { question: { type: 'string' } },
  required: ['question'],
  additionalProperties: false,
} as const satisfies Schema

export const askUser = {
  name: 'ask_user',
  description: 'Ask the user a question.',
  parameters,
  risk: 'low',
  // People think longer than machines: ten minutes, like an approval.
  timeoutMs: 600_000,
  idempotent: false,
  touches: () => [],
  async run({ question }, { signal }, { ask }) {
    if (question.trim() === '') return fail('the question is empty')
    if (ask === undefined) return fail('nobody is there to ask; decide yourself, or put the question into your answer')
    const answer = await ask(question, signal)
    if (answer === undefined) return fail('the user gave no answer; decide yourself, or put the question into your answer')
    return done(answer.trim() === '' ? '(the user answered with an empty line)' : answer)
  },
} as const satisfies ToolKind<typeof parameters, { readonly ask?: Ask }>
