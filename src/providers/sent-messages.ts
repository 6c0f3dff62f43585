/** Chooses the parts of the conversation that a request repeats: each model gets only its own thinking back, and no model gets blank text. */

import { isJsonObject } from '../kit/json.ts'
import { count } from '../kit/text.ts'
import type { Part } from '../runtime/event.ts'
import { picturesIn } from '../runtime/outcome.ts'
import type { Message, Picture } from '../runtime/port.ts'

/** `model` is the name that was asked for: a server answers an alias such as `latest` with another name. */
export type Maker = { readonly provider: string; readonly host: string; readonly model: string }

/** `bindsPrefix`: a signature of thinking covers all messages before it, so that the thinking is refused after one of them changed. */
export type MessageReader = Maker & { readonly bindsPrefix: boolean }

/** Writes the maker into the metadata of the parts that only their maker can read: thinking, and whatever the provider attached to a part. */
export function signParts(parts: readonly Part[], { provider, host, model }: Maker): readonly Part[] {
  return parts.map((part) =>
    part.type === 'thinking' || part.meta !== undefined ? { ...part, meta: { ...part.meta, maker: { provider, host, model } } } : part,
  )
}

/**
 * Leaves out, without a change of the journal, what a provider refuses, and with it each later request of the conversation:
 * - Thinking of another model, or from before a trim that the signature does not survive. A turn keeps its thinking whole or loses all of it with the metadata of its other parts, because a signature
 *   can cover what came before it, and the item of a call can refer to the thinking before it.
 * - Text without a visible character, and a message of which nothing but thinking is left then. Calls and results stay in pairs.
 * - White space at the end of a reply, which is refused where the reply is the last message. It is left out wherever the reply stands, so that
 *   a request begins with the very bytes of the request before: the caches of providers and the signatures of thinking need that.
 */
export function sentMessages(messages: readonly Message[], reader: MessageReader): readonly Message[] {
  let turn = 0
  const turns = messages.map(({ role }) => (role === 'user' ? ++turn : turn))
  const foreign = new Set(messages.flatMap((message, at) => (message.role !== 'assistant' || canRead(message, reader) ? [] : [turns[at]])))
  return messages.flatMap((message, at): readonly Message[] => {
    if (message.role !== 'assistant') return [message]
    const visible = message.parts.filter((part) => part.type !== 'text' || hasWords(part.text))
    const parts = foreign.has(turns[at]) ? visible.flatMap(withoutMeta) : visible
    const end = parts.at(-1)
    if (end?.type === 'text') parts[parts.length - 1] = { ...end, text: end.text.trimEnd() }
    return parts.some(({ type }) => type !== 'thinking') ? [{ role: 'assistant', parts }] : []
  })
}

function canRead({ parts, isAfterTrim }: Extract<Message, { role: 'assistant' }>, { bindsPrefix, ...maker }: MessageReader): boolean {
  return !(bindsPrefix && isAfterTrim) && parts.every((part) => isOf(part, maker))
}

/** A part that says nothing of its maker was journalled by an earlier version: its thinking is left out. */
function isOf(part: Part, { provider, host, model }: Maker): boolean {
  if (part.type !== 'thinking' && part.meta === undefined) return true
  const maker = part.meta?.maker
  return isJsonObject(maker) && maker.provider === provider && maker.host === host && maker.model === model
}

function withoutMeta({ meta: _, ...part }: Part): Part[] {
  return part.type === 'thinking' ? [] : [part]
}

/** Controls and marks without a width count as white space: what one server trims, another does not. */
function hasWords(text: string): boolean {
  return /[^\s\p{Cc}\p{Cf}]/u.test(text)
}

/** Replaces the pictures of each message by a note: the model does not see them. */
export function withoutPictures(messages: readonly Message[]): readonly Message[] {
  return messages.map((message) => {
    if (message.role === 'assistant' || !message.pictures?.length) return message
    const { pictures, ...rest } = message
    const note = `[${count(pictures.length, 'picture')} not shown: this model takes only text; say so if it matters]`
    return { ...rest, content: rest.content === '' ? note : `${rest.content}\n${note}` }
  })
}

/** Returns the pictures whose bytes the message has. */
export function picturesOf(message: Message): readonly Picture[] {
  return message.role === 'assistant' ? [] : (message.pictures ?? []).filter((picture) => 'base64' in picture)
}

/** Moves the pictures of results, for a protocol whose results are texts, into a message after the results of their round. */
export function withPicturesAfterResults(messages: readonly Message[]): readonly Message[] {
  const waiting: Picture[] = []
  return messages.flatMap((message, at): readonly Message[] => {
    if (message.role !== 'tool') return [message]
    const { pictures: _, ...result } = message
    waiting.push(...picturesOf(message))
    if (waiting.length === 0 || messages[at + 1]?.role === 'tool') return [result]
    return [result, { role: 'user', content: '[pictures of the results above]', ...picturesIn({ pictures: waiting.splice(0) }) }]
  })
}
