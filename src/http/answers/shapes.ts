/** Describes what routes of any server share: bodies of JSON, streams of events, numbers in a query. */

import { z } from '@hono/zod-openapi'

/** An answer or a body of JSON. */
export function json<S extends z.ZodType>(schema: S, description: string) {
  return { description, content: { 'application/json': { schema } } }
}

/** The content of a stream of server-sent events. */
export const eventStream = { 'text/event-stream': { schema: z.string() } }

/** How many at most, in a query. */
export function count(most: number) {
  return z.optional(z.coerce.number().pipe(z.int().min(1).max(most)))
}

type Plain<T> = T extends readonly (infer Item)[] ? Plain<Item>[] : T extends object ? { -readonly [Name in keyof T]: Plain<T[Name]> } : T

/** Returns the same value under a type that the route's schema accepts: what is sent as JSON is a copy that nobody changes. */
export function plain<T>(value: T): Plain<T> {
  return value as Plain<T>
}
