/** Describes the parameters and queries of the routes as they arrive: as text. */

import { z } from '@hono/zod-openapi'
import { HttpError } from '../../http/http-error.ts'
import { approvalId, approvalQuery, eventQuery } from '../contract/activity-shapes.ts'
import type { Caller } from '../contract/caller.ts'
import { runQuery } from '../contract/run-shapes.ts'
import { effectKey, name, runId, taskId, taskQuery } from '../contract/task-shapes.ts'

/** Accepts a whole number in decimal digits only. */
export function whole(most: number) {
  return z
    .string()
    .regex(/^\d{1,15}$/, 'this is not a whole number')
    .transform(Number)
    .pipe(z.int().max(most))
}

export function limit(usual = 50, most = 200) {
  return z
    .string()
    .regex(/^[1-9]\d{0,8}$/, 'this is not a whole number above 0')
    .transform(Number)
    .pipe(z.int().max(most))
    .default(usual)
}

export const taskAt = z.object({ id: taskId })
export const effectAt = z.object({ id: taskId, key: effectKey })
export const approvalAt = z.object({ id: approvalId })
export const runAt = z.object({ id: runId })
export const artifactAt = z.object({ id: runId, name })
export const agentAt = z.object({ id: name })
/** The plane makes ids of letters, digits, "_" and "-". */
const madeId = z.string().regex(/^[\w-]{1,64}$/, 'this is not an id')
export const keyAt = z.object({ id: name, keyId: madeId })
export const madeAt = z.object({ id: madeId })

const view = { view: z.optional(z.enum(['full', 'seed'])) }

const flag = z.optional(z.enum(['true', 'false']).transform((word) => word === 'true'))

export const taskListQuery = z.object({ ...taskQuery.shape, ...view, open: flag, brief: flag, limit: limit() })
export const approvalListQuery = z.object({ ...approvalQuery.shape, ...view, limit: limit() })
export const runListQuery = z.object({ ...runQuery.shape, limit: limit() })
const eventId = z.optional(whole(1e15))
export const eventListQuery = z.object({ ...eventQuery.shape, after: eventId, before: eventId, limit: limit() })

export const note = z.strictObject({ note: z.string().max(2_000).default('') })
/** Posts whose path says everything have this body. */
export const nothing = z.strictObject({})
export const removed = z.object({ removed: z.literal(true) })

/** Tells whether a request is one of the seed's, which asks for nothing but the seed's own parameter. */
export function isSeedQuery(query: Readonly<Record<string, string>>, known: readonly string[], own: string): boolean {
  if (query.view !== undefined) return query.view === 'seed'
  return Object.keys(query).every((name) => name === own || !known.includes(name))
}

/** Restricts the shared secret to the answers of the seed's routes. @throws HttpError 403 */
export function assertFullView({ kind }: Caller): void {
  if (kind === 'seed')
    throw new HttpError(403, 'forbidden', 'the shared secret reads the answers of the seed: ask without ?view=full and other filters')
}
