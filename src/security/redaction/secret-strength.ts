/** Which values are worth looking for: a dummy key such as `ollama` is an ordinary word, and taking it out would garble ordinary text. */

const [shortest, longestWord] = [12, 15]

/** Why a value is not looked for, as the end of a sentence about it; undefined for one that is. */
export function weaknessOf(value: string): string | undefined {
  const secret = value.trim()
  if (secret.length < shortest) return `is shorter than ${shortest} characters`
  return isWords(secret) ? 'consists of letters and dashes alone' : undefined
}

/** `not-needed`, `sk-no-key-required`. So many letters in a row that no word has them are a token. */
function isWords(secret: string): boolean {
  return /^[a-z-]+$/i.test(secret) && secret.split('-').every((word) => word.length <= longestWord)
}
