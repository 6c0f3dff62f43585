/**
 * Decides which values are worth redacting: a dummy key such as `ollama` is an ordinary word, and redacting it would garble ordinary text.
 */

const [shortest, longestWord] = [12, 15]

/** @returns why a value is not redacted, as the end of a sentence about it; undefined when it is redacted */
export function weaknessOf(value: string): string | undefined {
  const secret = value.trim()
  if (secret.length < shortest) return `is shorter than ${shortest} characters`
  return isWords(secret) ? 'consists of letters and dashes alone' : undefined
}

/** `not-needed`, `sk-no-key-required`. A run of letters longer than any word is a token. */
function isWords(secret: string): boolean {
  return /^[a-z-]+$/i.test(secret) && secret.split('-').every((word) => word.length <= longestWord)
}
