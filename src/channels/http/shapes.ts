/** Describes the shapes that several routes share, for the answers and for /openapi.json. */

import { z } from '@hono/zod-openapi'

/** An answer or a body of JSON. */
export function json<S extends z.ZodType>(schema: S, description: string) {
  return { description, content: { 'application/json': { schema } } }
}

export const conversationId = z
  .string()
  .regex(/^[a-z]+_[0-9a-z]{1,64}$/, 'no id of a conversation')
  .openapi({ example: 'conversation_4q2fqk8fd4spk980' })

export const messageText = z.string().min(1).max(900_000)

export const ending = z.object({ code: z.string(), message: z.string() })
