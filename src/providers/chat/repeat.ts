/** Knows an event that differs from an earlier one in nothing but the words it adds, and takes the words out without parsing it. */

import { isObject } from '../../kit/json.ts'
import type { Block } from '../wire/reply-parts.ts'
import { parsed } from './shape.ts'

export type Words = { readonly type: Block['type']; readonly text: string }

export type Repeats = {
  /** The words of an event that repeats the known one; undefined when it must be read in full. */
  wordsOf(event: string): Words | undefined
  /** Takes an event that was read in full as the one to compare the next with, if it only adds words. */
  learn(event: string, value: unknown): void
}

type Pattern = { readonly type: Block['type']; readonly before: string; readonly after: string }

const keys: readonly (readonly [string, Block['type']])[] = [
  ['content', 'text'],
  ['reasoning_content', 'thinking'],
  ['reasoning', 'thinking'],
]

/** A short reply is over before it is worth a study. */
const worthwhile = 16

/** A server whose events all differ (each has a time or a nonce) is not studied for ever. */
const patience = 4

export function knowRepeats(): Repeats {
  let known: Pattern | undefined
  let tries = patience
  let read = 0

  return {
    wordsOf(event) {
      if (known === undefined || !event.startsWith(known.before) || !event.endsWith(known.after)) return undefined
      const end = event.length - known.after.length
      if (end < known.before.length) return undefined
      const text = event.slice(known.before.length, end)
      // Neither the end of the string nor an escape in it: then it stands for itself.
      if (text.includes('"') || text.includes('\\')) return undefined
      tries = patience
      return { type: known.type, text }
    },
    learn(event, value) {
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
  // The same key may stand elsewhere too; what counts is where new words would end up.
  return plainDelta(parsed(`${before}?${text}${after}`))?.[key] === `?${text}` ? { type, before, after } : undefined
}

/** The delta of an event in which nothing else is said. */
function plainDelta(value: unknown): { readonly [key: string]: unknown } | undefined {
  if (!isObject(value) || isObject(value.usage) || !Array.isArray(value.choices)) return undefined
  const choice: unknown = value.choices[0]
  return isObject(choice) && !choice.finish_reason && isObject(choice.delta) ? choice.delta : undefined
}

function isNothing(value: unknown): boolean {
  return value === null || value === '' || (Array.isArray(value) && value.length === 0)
}
