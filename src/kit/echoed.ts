/** Parses JSON that a shell's `echo` has expanded: dash's `echo "$json"` turns the two characters `\n` in a string into a newline. */

import { parseJson } from './json.ts'
import { jsonEscape } from './wire.ts'

/**
 * Parses plain JSON, else JSON that went through such an `echo` once. In the second case a control character in a string stands for itself,
 * and so does a backslash unless `"` or `uXXXX` follows it: `echo` has expanded every other escape. @returns undefined for any other text
 */
export function parseEchoed(text: string): unknown {
  return parseJson(text) ?? parseJson(restore(text))
}

/**
 * Parses as `parseEchoed` does. If that fails, it also tries JSON in which a string ended with a backslash: `echo` left one backslash
 * before the closing quote, which then reads like an escaped quote. More JSON follows the real end of the string; the last candidate that
 * parses wins.
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

/** The most candidates that it tries; each one scans the whole text. */
const MOST_ENDS = 16

/** Restores the escapes, in strings only: a newline between strings is white space. */
function restore(text: string): string {
  return text.replace(/".*?((?<!\\)"|$)/gs, (string) => string.replace(/\\(?!"|u[\da-f]{4})|\p{Cc}/giu, jsonEscape))
}
