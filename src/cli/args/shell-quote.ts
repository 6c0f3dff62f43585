/** Command lines that we suggest, which somebody pastes into a shell. */

import { quoteText } from '../../security/command/syntax/quote.ts'

/** These words and no others, whatever the shell would make of them bare. */
export function pasteable(words: readonly string[]): string {
  return words.map(quoteText).join(' ')
}
