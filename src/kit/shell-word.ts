/** Writes words for a POSIX shell. */

/** Quotes a word, whatever is in it. */
export function shellQuoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`
}
