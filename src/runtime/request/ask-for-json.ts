/** Asks a model one question about data, and reads its answer as JSON of a schema. */

import type { z } from 'zod'
import { parseJson } from '../../kit/json.ts'
import type { Provider } from '../port.ts'

type JsonQuestion<Shape> = {
  readonly model: string
  /** Says what to do, and names the form of the answer. */
  readonly task: string
  /** The model gets it as JSON. */
  readonly about: { readonly [name: string]: string }
  readonly shape: z.ZodType<Shape>
  readonly maxOutputTokens: number
  readonly signal: AbortSignal
}

/** @returns the answer as it came, and what it says when it fits the schema. @throws whatever keeps the model from answering */
export async function askForJson<Shape>(provider: Provider, question: JsonQuestion<Shape>): Promise<{ text: string; value?: Shape }> {
  const { model, task, about, shape, maxOutputTokens, signal } = question
  const content = JSON.stringify(about, undefined, 1)
  const request = { systemPrompt: task, tools: [], model, maxOutputTokens, temperature: 0, messages: [{ role: 'user', content }] } as const
  let text = ''
  for await (const chunk of provider.chat(request, signal))
    if (chunk.type === 'done') text = chunk.response.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  const { data } = shape.safeParse(parseJson(withoutFence(text)))
  return data === undefined ? { text } : { text, value: data }
}

/** Removes the code fence that models put around JSON. */
export function withoutFence(text: string): string {
  return text.trim().replace(/^```(?:json)?\n([\s\S]*)\n```$/, '$1')
}
