/** Reads what a server sends: its events, and the members of an answer. An invalid member becomes an error that shows it. */

import { createParser } from 'eventsource-parser'
import { isObject } from '../../kit/json.ts'
import type { Reported } from '../wire/usage.ts'

/** Maps the name and data of a named event to its data; an empty result drops the event. */
type EventMapper = (name: string, data: string) => string

/** Parses server-sent events from bytes that may be cut anywhere: returns the `data` of each event in order and skips other fields. */
export function readEvents(named: EventMapper = (_, data) => data) {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const events: string[] = []
  let begun = ''

  function add(name: string, data: string): void {
    const event = data && name ? named(name, data) : data
    if (event) events.push(event)
  }

  const parser = createParser({
    onEvent: ({ event = '', data }) => add(event.trim(), data),
    // Older llama.cpp servers report an error in a field of this name.
    onError: ({ field, value = '' }) => field === 'error' && add(field, value),
  })

  function feed(lines: string): readonly string[] {
    parser.feed(lines)
    return events.splice(0)
  }

  return {
    /** Returns the events that these bytes complete. */
    take(piece: Uint8Array): readonly string[] {
      const text = decoder.decode(piece, { stream: true })
      // A lone CR ends a line only if the piece contains no LF.
      const end = text.lastIndexOf('\n') + 1 || text.lastIndexOf('\r') + 1
      // The parser drops the beginning of a line whose field it does not know, so it gets whole lines.
      const lines = end === 0 ? '' : begun + text.slice(0, end)
      begun = end === 0 ? begun + text : text.slice(end)
      return feed(lines)
    },
    /** Returns the data of an incomplete last event when the body ended inside it. */
    rest: () => feed(`${begun}${decoder.decode()}\n\n`)[0],
  }
}

export type JsonFields = { readonly [key: string]: unknown }

/** The caller that catches this error adds the provider's name and turns it into a `bad_response`. */
export function unreadable(what: string, value: unknown): Error {
  return new Error(`${what}: ${JSON.stringify(value)?.slice(0, 200)}`)
}

/** @returns '' when the member is null or absent. @throws when it is not a string */
export function stringIn(from: JsonFields, key: string): string {
  const value = from[key]
  if (value === undefined || value === null) return ''
  if (typeof value !== 'string') throw unreadable(`"${key}" is not a string`, from)
  return value
}

/** @returns an empty list when the member is null or absent. @throws when it is not a list */
export function listIn(from: JsonFields, key: string): readonly unknown[] {
  const value = from[key]
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw unreadable(`"${key}" is not a list`, from)
  return value
}

/**
 * Ignores counts that are not numbers. The tokens of the cache have several names: OpenAI's, DeepSeek's, Moonshot's, and Anthropic's behind a
 * gateway; everywhere they are a part of `prompt_tokens`.
 */
export function reportedIn(usage: JsonFields): Reported {
  const details = isObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {}
  const read = [details.cached_tokens, usage.prompt_cache_hit_tokens, usage.cache_read_input_tokens, usage.cached_tokens]
  const written = [details.cache_write_tokens, usage.cache_creation_input_tokens]
  return {
    inputTokens: { total: numberIn(usage, 'prompt_tokens'), cacheRead: read.find(isNumber), cacheWrite: written.find(isNumber) },
    outputTokens: { total: numberIn(usage, 'completion_tokens') },
  }
}

/** Recognises events such as {} or {"type":"ping"}. */
export function isKeepAlive(event: JsonFields): boolean {
  return Object.keys(event).every((key) => key === 'type') && (event.type === undefined || keepAlives.has(String(event.type)))
}

/** Events that servers send to keep a silent connection alive. */
export const keepAlives: ReadonlySet<string> = new Set(['ping', 'keepalive', 'keep-alive', 'heartbeat'])

function numberIn(from: JsonFields, key: string): number | undefined {
  const value = from[key]
  return isNumber(value) ? value : undefined
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number'
}
