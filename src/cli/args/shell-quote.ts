/** Quotes the command lines that we suggest, so that a user can paste them into a shell. */

import { quoteText } from '../../security/command/syntax/quote.ts'

/** Quotes the words so that the shell passes exactly these words. */
export function pasteable(words: readonly string[]): string {
  return words.map(quoteText).join(' ')
}
