/** Reads members of what a server sent; what is not as it must be is an error that shows it. */

import { isObject } from '../../kit/json.ts'
import type { Reported } from '../wire/usage.ts'

export type Fields = { readonly [key: string]: unknown }

/** Where it is caught it gets the provider's name and becomes a `bad_response`. */
export function unreadable(what: string, value: unknown): Error {
  return new Error(`${what}: ${JSON.stringify(value)?.slice(0, 200)}`)
}

/** '' for null and for none. @throws when there is something else than a string */
export function stringIn(from: Fields, key: string): string {
  const value = from[key]
  if (value === undefined || value === null) return ''
  if (typeof value !== 'string') throw unreadable(`"${key}" is no string`, from)
  return value
}

/** Empty for null and for none. @throws when there is something else than a list */
export function listIn(from: Fields, key: string): readonly unknown[] {
  const value = from[key]
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw unreadable(`"${key}" is no list`, from)
  return value
}

/** Counts that are no numbers are no counts. */
export function reportedIn(usage: Fields): Reported {
  const details = isObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {}
  return {
    inputTokens: { total: numberIn(usage, 'prompt_tokens'), cacheRead: numberIn(details, 'cached_tokens') },
    outputTokens: { total: numberIn(usage, 'completion_tokens') },
  }
}

/** Such as {} or {"type":"ping"}. */
export function isKeepAlive(event: Fields): boolean {
  return Object.keys(event).every((key) => key === 'type') && (event.type === undefined || keepAlives.has(String(event.type)))
}

/** What servers send so that nobody takes a silent connection for a dead one. */
export const keepAlives: ReadonlySet<string> = new Set(['ping', 'keepalive', 'keep-alive', 'heartbeat'])

/** Undefined when it is no JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function numberIn(from: Fields, key: string): number | undefined {
  const value = from[key]
  return typeof value === 'number' ? value : undefined
}
