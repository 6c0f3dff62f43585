/** Puts the events of a turn into the words of OpenAI's API: one text, whole or in pieces, and what it used. */

import type { Conversation } from '../../../host/api.ts'
import { HttpError } from '../../../http/http-error.ts'
import type { AgentEvent, Ending } from '../../../runtime/event.ts'
import { endingNote } from '../../../runtime/history-text.ts'

export type Ended = { readonly conversation: Pick<Conversation, 'usage' | 'unanswered'>; readonly ending: Ending }

/** Returns the pieces of text of a turn: those that streamed, or whole texts where none did. Rounds are separated by an empty line. */
export function createPieces() {
  const state = { sent: '', any: false }
  const begun = (text: string) => (state.any && state.sent === '' && text !== '' ? `\n\n${text}` : text)
  return (event: AgentEvent): string => {
    if (event.type !== 'text') return ''
    if (event.isPartial) {
      const piece = begun(event.content)
      state.sent += event.content
      return piece
    }
    // A call that was tried again has streamed another text.
    const rest = event.content.startsWith(state.sent) ? event.content.slice(state.sent.length) : `\n\n${event.content}`
    const piece = begun(rest)
    Object.assign(state, { sent: '', any: true })
    return piece
  }
}

/** Names what stopped the turn below the model's own text: "done" must not stand alone when a call was denied. */
export function noteOf({ conversation, ending }: Ended): string {
  const open = conversation.unanswered()
  if (failureOf(ending) || (ending.code === 'answered' && open.length === 0)) return ''
  const note = ending.code === 'answered' ? 'approval needed' : endingNote(ending)
  return `\n\n[${note}${open.length > 0 ? `; open questions: ${open.join(', ')}` : ''}]`
}

/** Returns the failure of a turn that gave no answer. */
export function failureOf({ code, message }: Ending): HttpError | undefined {
  const known: { readonly [code: string]: readonly [status: number, type: string] } = {
    provider: [502, 'server_error'],
    timeout: [504, 'server_error'],
    error: [500, 'server_error'],
    stalled: [500, 'server_error'],
    integrity: [500, 'server_error'],
    budget: [429, 'insufficient_quota'],
    estop: [503, 'server_error'],
    cancelled: [503, 'server_error'],
  }
  const found = known[code]
  // A client would try a spent budget or a stop again and again.
  return (
    found &&
    new HttpError(found[0], code, message, code === 'budget' || code === 'estop' ? { 'x-should-retry': 'false' } : {}, { type: found[1] })
  )
}

export function finishOf({ conversation, ending: { code } }: Ended): 'stop' | 'length' | 'content_filter' {
  if (code === 'limit') return 'length'
  return code === 'denied' || code === 'approval_needed' || conversation.unanswered().length > 0 ? 'content_filter' : 'stop'
}

export function usageOf({ conversation }: Ended) {
  const { inputTokens = 0, outputTokens = 0, cachedInputTokens = 0 } = conversation.usage() ?? {}
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedInputTokens },
  }
}

/** What every answer to a request repeats. */
export type Named = { readonly id: string; readonly created: number; readonly model: string }

export function completionOf(named: Named, text: string, done: Ended) {
  const message = { role: 'assistant', content: `${text}${noteOf(done)}`.trim(), refusal: null }
  const choice = { index: 0, message, finish_reason: finishOf(done), logprobs: null }
  return { ...named, object: 'chat.completion' as const, choices: [choice], usage: usageOf(done) }
}

/** Clients of OpenAI's API expect more than a code and a message. */
export function errorFields(path: string, error: HttpError): object {
  return path.startsWith('/v1/') ? openAiFields(error) : {}
}

/** The fields that errors have in OpenAI's API besides code and message. */
export function openAiFields({ status }: HttpError): object {
  const types: { readonly [status: number]: string } = { 401: 'authentication_error', 403: 'permission_error', 429: 'rate_limit_error' }
  return { type: types[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error'), param: null }
}
