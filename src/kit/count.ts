/** Formats counts for people. */

/** 1234567 → "1,234,567". */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',')
}

/** `1 receipt`, `2 receipts`, `3,000 receipts`. It adds an s to `word` unless `number` is 1. */
export function count(number: number, word: string): string {
  return `${grouped(number)} ${word}${number === 1 ? '' : 's'}`
}
