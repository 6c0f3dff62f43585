/** Finds a query's words in a text, ignoring case and accents, and cuts out the text around them. */

import { flat } from '../../kit/text.ts'

const before = 60
const width = 200

/**
 * Returns lower case without accents. A composed letter stays one character long, so that offsets in the result are offsets in the text.
 */
export function fold(text: string): string {
  const lower = text.toLowerCase()
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the whole ASCII range is meant
  return /^[\x00-\x7f]*$/.test(lower) ? lower : lower.normalize('NFD').replace(/\p{M}/gu, '')
}

/**
 * Matches words at their start, so that "search" also finds "searching". Words contain only letters and digits, so nothing needs escaping.
 */
export function finder(words: readonly string[]): RegExp | undefined {
  const plain = words.map(fold).filter((word) => /^[\p{L}\p{N}]+$/u.test(word))
  return plain.length === 0 ? undefined : new RegExp(`(?<![\\p{L}\\p{N}])(?:${plain.join('|')})`, 'gu')
}

/** Returns about 200 characters of the text on one line, around the first needle found, or else from the start. */
export function snippet(content: string, words: readonly string[], needles: readonly string[]): string {
  const folded = fold(content)
  const exact = needles.map((needle) => folded.indexOf(fold(needle))).find((at) => at >= 0)
  const at = Math.max(exact ?? finder(words)?.exec(folded)?.index ?? finder(stems(words))?.exec(folded)?.index ?? 0, 0)
  const start = at <= before ? 0 : at - before
  const piece = flat(content.slice(start, start + width).toWellFormed()).trim()
  return `${start > 0 ? '…' : ''}${piece}${start + width < content.length ? '…' : ''}`
}

/** The index matches word stems; without its stemmer, a word without its ending is close enough to find the place. */
function stems(words: readonly string[]): string[] {
  return words.map((word) => word.slice(0, Math.max(4, word.length - 3)))
}
