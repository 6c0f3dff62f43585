/** Numbers in words that people read. */

/** 1234567 → "1,234,567". */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',')
}

/** `1 receipt`, `2 receipts`, `3,000 receipts`. `word` takes an s when there is more or less than one. */
export function count(number: number, word: string): string {
  return `${grouped(number)} ${word}${number === 1 ? '' : 's'}`
}
