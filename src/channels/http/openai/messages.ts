/** Reads what a client of OpenAI's API says: its messages become the history of one turn, and what the agent cannot do is refused. */

import { z } from '@hono/zod-openapi'
import type { Past } from '../../../host/api.ts'
import { HttpError } from '../../../http/http-error.ts'
import type { Message } from '../../../runtime/port.ts'

const content = z.union([z.string(), z.array(z.looseObject({ type: z.string() })), z.null()])
const message = z.looseObject({ role: z.string(), content: z.optional(content) })

/** Fields that are not named here have no effect: the agent's own settings apply. */
export const completionRequest = z.looseObject({
  model: z.string(),
  messages: z.array(message).min(1).max(10_000),
  stream: z.nullish(z.boolean()),
  stream_options: z.nullish(z.looseObject({ include_usage: z.nullish(z.boolean()) })),
  n: z.nullish(z.int()),
  on_disconnect: z.optional(z.enum(['continue', 'cancel'])),
})
export type CompletionRequest = z.infer<typeof completionRequest>

export type Asked = { readonly prompt: string; readonly past: Past }

/** Present and not empty, these ask for something that only the agent itself decides. */
const refused: { readonly [name: string]: string } = {
  tools: 'the tools of the agent stay inside it and run here, behind its gate; a client cannot bring its own',
  functions: 'the tools of the agent stay inside it and run here, behind its gate; a client cannot bring its own',
  audio: 'there is no audio here',
  web_search_options: 'the agent decides by itself what it looks up',
}

/** @throws HttpError 400 that names the parameter */
export function askedOf(request: CompletionRequest): Asked {
  for (const [name, why] of Object.entries(refused)) if (!isEmpty(request[name])) throw unsupported(name, `${name}: ${why}; leave it out`)
  if ((request.n ?? 1) !== 1) throw unsupported('n', 'n: one answer at a time; leave it out')
  const format = request.response_format
  if (!isEmpty(format) && !(typeof format === 'object' && format !== null && 'type' in format && format.type === 'text'))
    throw unsupported('response_format', 'response_format: answers are plain text; leave it out')
  const texts = request.messages.map(({ role, content }, at) => ({ role, text: textOf(content, at), at }))
  const last = texts.at(-1)
  if (last?.role !== 'user' || last.text.trim() === '')
    throw unsupported('messages', 'messages: the last one must be of the user, and not empty')
  const system = texts.filter(({ role }) => role === 'system' || role === 'developer').map(({ text }) => text)
  const history = texts.slice(0, -1).flatMap(({ role, text, at }) => messageOf(role, text, at))
  return { prompt: last.text, past: { history, ...(system.length > 0 ? { soul: system.join('\n\n') } : {}) } }
}

function messageOf(role: string, text: string, at: number): Message[] {
  if (role === 'user') return [{ role, content: text }]
  if (role === 'assistant') return text === '' ? [] : [{ role, parts: [{ type: 'text', text }] }]
  if (role === 'system' || role === 'developer') return []
  throw unsupported('messages', `messages.${at}: the role ${JSON.stringify(role)} is not known here; use system, user and assistant`)
}

function textOf(content: CompletionRequest['messages'][number]['content'], at: number): string {
  if (typeof content === 'string') return content
  return (content ?? []).map((part) => partOf(part, at)).join('')
}

function partOf({ type, text }: { readonly type: string; readonly text?: unknown }, at: number): string {
  if (type === 'text' && typeof text === 'string') return text
  throw unsupported('messages', `messages.${at}: a part of the type ${JSON.stringify(type)} cannot be read here; send text`)
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0)
}

function unsupported(param: string, message: string): HttpError {
  return new HttpError(400, 'unsupported_parameter', message, {}, { type: 'invalid_request_error', param })
}
