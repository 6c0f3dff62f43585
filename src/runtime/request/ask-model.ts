/** Asks the model for the next reply: makes the request fit before, and repeats it smaller when the model refuses it for its length. */

import type { ExternalEvent } from '../event.ts'
import type { ModelWindow, ProviderFailure } from '../port.ts'
import type { RunMessages } from './run-messages.ts'
import { type Question, think, unasked } from './think.ts'

export type Asking = {
  readonly question: Omit<Question, 'request' | 'onFailure'>
  readonly request: Omit<Question['request'], 'messages'>
  readonly messages: RunMessages
  readonly window?: ModelWindow
  /** Records a trim; resolves when it is on disk and `messages` has it: with undefined, or with what rejected it. */
  readonly record: (trim: Extract<ExternalEvent, { type: 'context.trimmed' }>) => Promise<string | undefined>
}

type Reply = Awaited<ReturnType<typeof think>>

/** How often a request that was refused for its length is repeated. */
const mostRepeats = 2

/** Estimates are rather too high, so a request that is a little above the window is sent. */
const surelyTooLong = 1.25

/** Never rejects. */
export async function askModel({ question, request, messages, window, record }: Asking): Promise<Reply> {
  const ask = (onFailure?: (failure: ProviderFailure) => void) =>
    think({ ...question, request: { ...request, messages: messages.all() }, ...(onFailure ? { onFailure } : {}) })
  if (!window) return ask()
  await window.ready(question.signal)
  let refused: { readonly reply: Extract<Reply, { type: 'model.fail' }>; readonly note: string | undefined } | undefined
  for (let repeats = 0; ; repeats += 1) {
    const trim = repeats > mostRepeats ? undefined : await messages.makeRoom(question.signal, refused)
    if (trim && (await record(trim)) !== undefined) return unasked
    const tokens = window.tokens()
    if (refused && !trim) return tooLong(refused.reply, { used: messages.size(), tokens, note: refused.note })
    if (window.isKnown() && messages.bound() > tokens && messages.size() > tokens * surelyTooLong)
      return tooLong(unsent(messages.size()), { used: messages.size(), tokens, note: undefined })
    const failures: ProviderFailure[] = []
    const reply = await ask((failure) => void failures.push(failure))
    if (reply.type === 'model.done') {
      const { usage, model, provider = '' } = reply
      if (!usage.estimated) window.replied(messages.size(), { usage, model, provider })
      return { ...reply, context: { window: window.tokens(), used: usage.inputTokens || messages.size() } }
    }
    if (reply.code !== 'context_length' || question.signal.aborted) return reply
    refused = { reply, note: window.refused(messages.size(), failures[0]?.detail ?? {}) }
  }
}

/** Some servers cut the beginning of a long request without a word, so it is not sent. */
function unsent(used: number): Extract<Reply, { type: 'model.fail' }> {
  return { type: 'model.fail', code: 'context_length', message: `the request has about ${used} tokens and was not sent`, unbilled: true }
}

type Sizes = { readonly used: number; readonly tokens: number; readonly note: string | undefined }

function tooLong(reply: Extract<Reply, { type: 'model.fail' }>, { used, tokens, note }: Sizes): Reply {
  const sizes = used > tokens ? `, and the model's window has ${tokens}` : ''
  const what = `nothing more of it can be left out${sizes}: send a shorter message, put long text into a file, or use a model with a larger window`
  return { ...reply, message: [reply.message, what, ...(note ? [note] : [])].join('; ') }
}
