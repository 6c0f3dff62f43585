/** Describes the shapes that several routes share, for the answers and for /openapi.json. */

import { z } from '@hono/zod-openapi'
import type { Caller } from './access/token-access.ts'
import type { TurnRequest } from './turns/talks.ts'

export const conversationId = z
  .string()
  .regex(/^[a-z]+_[0-9a-z]{1,64}$/, 'this is no id of a conversation')
  .openapi({ example: 'conversation_4q2fqk8fd4spk980' })

export const runId = z
  .string()
  .regex(/^[a-z]+_[0-9a-z]{1,64}$/, 'this is no id of a run')
  .openapi({ example: 'run_3k5v9q0d2m7x1c8b6z4a' })

export const messageText = z
  .string()
  .min(1)
  .max(900_000)
  .refine((text) => text.trim() !== '', 'there is nothing to answer: the text is empty')

export const onDisconnect = z.enum(['continue', 'cancel']).openapi({ description: 'What happens to the turn when the client goes away' })

export const onApproval = z.enum(['wait', 'end']).openapi({
  description:
    'What happens at a question: the turn waits up to ten minutes for an answer from elsewhere, or it ends and the question stays open',
})

export const ending = z.object({ code: z.string(), message: z.string() })

/** Returns the part of a turn that every route begins alike. */
export function toTurn(
  caller: Caller,
  message: string,
  conversationId: string | undefined,
): Pick<TurnRequest, 'caller' | 'message' | 'conversationId'> {
  return { caller, message, conversationId }
}
