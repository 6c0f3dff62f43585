/** Recognises an event that differs from an earlier one only in its added text, and extracts the text without parsing the event. */

import { isObject, parseJson } from '../../kit/json.ts'
import type { Block } from '../wire/reply-parts.ts'

export type Repeats = ReturnType<typeof createRepeatMatcher>

type Pattern = { readonly type: Block['type']; readonly before: string; readonly after: string }

const keys: readonly (readonly [string, Block['type']])[] = [
  ['content', 'text'],
  ['reasoning_content', 'thinking'],
  ['reasoning', 'thinking'],
]

/** Number of events before learning starts: a short reply ends before learning pays off. */
const worthwhile = 16

/** Number of patterns without a match after which learning stops, for a server whose events all differ (by a time or a nonce). */
const patience = 4

export function createRepeatMatcher() {
  let known: Pattern | undefined
  let tries = patience
  let read = 0

  return {
    /** Returns the text of an event that matches the known pattern; undefined when the event must be parsed. */
    wordsOf(event: string): { readonly type: Block['type']; readonly text: string } | undefined {
      if (known === undefined || !event.startsWith(known.before) || !event.endsWith(known.after)) return undefined
      const end = event.length - known.after.length
      if (end < known.before.length) return undefined
      const text = event.slice(known.before.length, end)
      // Without a quote or an escape, the text needs no decoding.
      if (text.includes('"') || text.includes('\\')) return undefined
      tries = patience
      return { type: known.type, text }
    },
    /** Makes a parsed event the pattern for the next events, if it only adds text. */
    learn(event: string, value: unknown): void {
      if (tries === 0 || ++read < worthwhile) return
      const found = patternOf(event, value)
      if (found === undefined) return
      known = found
      tries--
    },
  }
}

function patternOf(event: string, value: unknown): Pattern | undefined {
  const delta = plainDelta(value)
  if (delta === undefined) return undefined
  const said = Object.entries(delta).filter(([key, each]) => key !== 'role' && !isNothing(each))
  const [key = '', text] = said[0] ?? []
  const type = keys.find(([name]) => name === key)?.[1]
  if (said.length !== 1 || type === undefined || typeof text !== 'string') return undefined
  const start = event.indexOf('"', event.indexOf(`"${key}"`) + key.length + 2) + 1
  const [before, after] = [event.slice(0, start), event.slice(start + text.length)]
  if (before + text + after !== event || !after.startsWith('"')) return undefined
  // The same key may occur elsewhere too, so check that new text at this place changes the delta.
  return plainDelta(parseJson(`${before}?${text}${after}`))?.[key] === `?${text}` ? { type, before, after } : undefined
}

/** @returns the delta of an event that contains nothing else */
function plainDelta(value: unknown): { readonly [key: string]: unknown } | undefined {
  if (!isObject(value) || isObject(value.usage) || !Array.isArray(value.choices)) return undefined
  const choice: unknown = value.choices[0]
  return isObject(choice) && !choice.finish_reason && isObject(choice.delta) ? choice.delta : undefined
}

function isNothing(value: unknown): boolean {
  return value === null || value === '' || (Array.isArray(value) && value.length === 0)
}
