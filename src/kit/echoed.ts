/** JSON that a shell's `echo` has expanded: under dash `echo "$json"` turns the two characters `\n` inside a string into a newline. */

import { jsonEscape, parseJson } from './wire.ts'

/**
 * JSON as it is; else JSON that went through such an `echo` once. There a control character in a string is itself, and a backslash stands
 * alone unless `"` or `uXXXX` follows it: every other escape is expanded by then. Undefined for text that is neither.
 */
export function parseEchoed(text: string): unknown {
  return parseJson(text) ?? parseJson(restore(text))
}

/**
 * The same; where that finds nothing, also JSON in which a string ended with a backslash: `echo` left one before the quote that ends it, and
 * it reads like a quote in the string. Behind the right one there is more JSON; the last that fits counts.
 */
export function recoverEchoed(text: string): unknown {
  const found = parseEchoed(text)
  if (found !== undefined) return found
  const ends = [...text.matchAll(/\\"(?=[\s,:{}[\]]+("|$))/g)].slice(-MOST_ENDS).reverse()
  for (const { index } of ends) {
    const ended = parseJson(restore(`${text.slice(0, index)}\\u005c${text.slice(index + 1)}`))
    if (ended !== undefined) return ended
  }
  return undefined
}

/** Each costs a look at the whole text. */
const MOST_ENDS = 16

/** The escapes back in, in strings only: between them a newline is white space. */
function restore(text: string): string {
  return text.replace(/".*?((?<!\\)"|$)/gs, (string) => string.replace(/\\(?!"|u[\da-f]{4})|\p{Cc}/giu, jsonEscape))
}
