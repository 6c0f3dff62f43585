/** Declares what the routes of the gateway share: their parts, the shapes of answers and of /openapi.json, the spelling of names. */

import { z } from '@hono/zod-openapi'
import type { Setup } from '../../host/api.ts'
import type { Telemetry } from '../../host/events/telemetry/open-telemetry.ts'
import { FailureError } from '../../host/failure.ts'
import type { Api } from '../../http/api.ts'
import { HttpError } from '../../http/http-error.ts'
import type { Picture } from '../../runtime/port.ts'
import { pictureFrom } from '../../tools/fit-picture.ts'
import type { ChannelHost } from '../inbox/channel-api.ts'
import type { Caller, Holders } from './access.ts'
import type { Snake } from './answer-shapes.ts'
import type { OpenConversations, TurnRequest } from './open-conversations.ts'

export type Gateway = {
  readonly host: ChannelHost
  readonly setup: Setup
  readonly version: string
  readonly openConversations: OpenConversations
  readonly holders: Holders
  /** Tells whether it speaks HTTPS. */
  readonly secure: boolean
  /** Counts since the server began. */
  readonly telemetry: Promise<Telemetry>
}

export type GatewayApi = Api<Caller>

/** Adds some routes. */
export type Routes = (app: GatewayApi, gateway: Gateway) => void

export const conversationId = z
  .string()
  .regex(/^[a-z]+_[0-9a-z]{1,64}$/, 'this is not the id of a conversation')
  .openapi({ example: 'conversation_4q2fqk8fd4spk980' })

export const runId = z
  .string()
  .regex(/^[a-z]+_[0-9a-z]{1,64}$/, 'this is not the id of a run')
  .openapi({ example: 'run_3k5v9q0d2m7x1c8b6z4a' })

export const messageText = z
  .string()
  .min(1)
  .max(900_000)
  .refine((text) => text.trim() !== '', 'there is nothing to answer: the text is empty')

/** Reads pictures that a client sends as data: URLs. @throws HttpError 400 that names the one that cannot be read */
export async function picturesOf(urls: readonly string[] = [], param = 'images'): Promise<readonly Picture[]> {
  return Promise.all(
    urls.map(async (url, at) => {
      const data = /^data:[^,]*;base64,/i.exec(url)
      const fitted = data && (await pictureFrom(Buffer.from(url.slice(data[0].length), 'base64')))
      if (fitted?.ok) return fitted.picture
      const why = fitted ? fitted.why : 'only data: URLs with base64 are read; send the picture itself'
      throw new HttpError(400, 'unsupported_parameter', `${param}: image ${at + 1}: ${why}`, {}, { type: 'invalid_request_error', param })
    }),
  )
}

const onDisconnect = z.enum(['continue', 'cancel']).openapi({ description: 'What happens to the turn when the client goes away' })

const onApproval = z
  .enum(['wait', 'end'])
  .openapi({
    description:
      'What happens at a question: the turn waits up to ten minutes for an answer from elsewhere, or it ends and the question stays open',
  })

export const ending = z.object({ code: z.string(), message: z.string() })

/** The members of a request for a turn, besides its text. */
export const turnMembers = {
  conversation_id: z.optional(conversationId),
  images: z
    .array(z.string())
    .max(20)
    .optional()
    .openapi({ description: 'Pictures that the model sees with the message, as data: URLs (PNG, JPEG, WebP, GIF)' }),
  on_disconnect: z.optional(onDisconnect),
  on_approval: z.optional(onApproval),
} as const

/** Returns the part of a turn that every route begins alike. */
export function toTurn(
  { var: { caller }, env }: { readonly var: { readonly caller: Caller }; readonly env: TurnRequest['env'] },
  message: string,
  { conversationId, pictures }: Pick<TurnRequest, 'conversationId' | 'pictures'> = {},
): Pick<TurnRequest, 'caller' | 'env' | 'message' | 'conversationId' | 'pictures'> {
  return { caller, env, message, conversationId, pictures }
}

/** Leaves the values alone: what a call received or a tool returned keeps its own names. */
export function snake<T extends object>(record: T): Snake<T> {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value]),
  ) as Snake<T>
}

type Refusal = readonly [failure: FailureError['code'], status: number, code: string]

/** @throws HttpError with this status and code in place of such a failure */
export async function refusedAs<T>([failure, status, code]: Refusal, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw error instanceof FailureError && error.code === failure ? new HttpError(status, code, error.message) : error
  }
}

/** @throws HttpError 404 when the lookup says that what was named does not exist */
export function orMissing<T>(look: () => T | Promise<T>): Promise<T> {
  return refusedAs(['error', 404, 'not_found'], look)
}
