/** ask_user: a question to the person at the other end, if there is one. */

import type { Tool } from '../../runtime/port.ts'
import { done, fail, text } from '../input.ts'
import { specs } from '../specs.ts'

/** Undefined when the person gave no answer (end of input). Rejects or settles soon after the signal fires. */
export type Ask = (question: string, signal: AbortSignal) => Promise<string | undefined>

/** Without `ask` nobody is there. */
export function askUserTool({ ask }: { readonly ask?: Ask }): Tool {
  return {
    ...specs.ask_user,
    touches: () => [],
    async invoke(input, { signal }) {
      const question = text(input, 'question')
      if (question.trim() === '') return fail('the question is empty')
      if (ask === undefined) return fail('nobody is there to ask; decide yourself, or put the question into your answer')
      const answer = await ask(question, signal)
      if (answer === undefined) return fail('the user gave no answer; decide yourself, or put the question into your answer')
      return done(answer.trim() === '' ? '(the user answered with an empty line)' : answer)
    },
  }
}
