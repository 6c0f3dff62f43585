/** Defines the tool ask_user, which asks the user a question when a user is connected. */

import { objectSchema } from '../../kit/json.ts'
import { done, fail, type ToolKind } from '../tool-kind.ts'

/**
 * Resolves to undefined when the user gave no answer (end of input). Settles or rejects soon after the signal fires. Absent: no user is
 * connected, and the tool tells the model to decide itself.
 */
export type Ask = (question: string, signal: AbortSignal) => Promise<string | undefined>

const parameters = objectSchema({ question: { type: 'string' } }, 'question')

export const askUser = {
  name: 'ask_user',
  description: 'Ask the user a question.',
  parameters,
  risk: 'low',
  // A person needs more time than a machine: ten minutes, like an approval.
  timeoutMs: 600_000,
  idempotent: false,
  touches: () => [],
  async run({ question }, { signal }, { ask }) {
    if (question.trim() === '') return fail('the question is empty')
    if (ask === undefined) return fail('no user is connected; decide yourself, or put the question into your answer')
    const answer = await ask(question, signal)
    if (answer === undefined) return fail('the user gave no answer; decide yourself, or put the question into your answer')
    return done(answer.trim() === '' ? '(the user answered with an empty line)' : answer)
  },
} as const satisfies ToolKind<typeof parameters, { readonly ask?: Ask }>
