/** A number of things, in words. */

/** `1 receipt`, `2 receipts`, `3,000 receipts`. `word` takes an s when there is more or less than one. */
export function count(number: number, word: string): string {
  return `${number.toLocaleString('en')} ${word}${number === 1 ? '' : 's'}`
}
