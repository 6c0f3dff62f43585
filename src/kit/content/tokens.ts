/** Estimates how many tokens a text has for a model whose tokenizer is not known: rather too many than too few. */

/** About how many bytes of English prose have a token. */
export const proseBytes = 3.5

/** The tokens of a picture in the usual models; they do not depend on its bytes. */
export const pictureTokens = 2_000

/** From this many characters without a break, a text may be encoded bytes (base64, hex, digits), whose every character can be a token. */
const encodedRun = 24

const [separator, letter, capital, digit] = [1, 2, 3, 4]

/** Which kind of a run's character each ASCII character is; 0: it ends the run. */
const kinds = Uint8Array.from({ length: 128 }, (_, code) => {
  if (code < 48) return code === 43 || code === 45 || code === 47 ? separator : 0
  if (code < 58) return digit
  if (code < 65 || code > 122) return code === 61 ? separator : 0
  return code < 91 ? capital : code > 96 ? letter : code === 95 ? separator : 0
})

/**
 * Sixteenths of a token of each ASCII character, measured against the tokenizers of GPT-4, GPT-4o and Llama 3. A letter or space is part of
 * a word; a sign is often a token of its own, and a digit always one for some models.
 */
const weights = Uint8Array.from(kinds, (kind, code) => (kind === digit ? 12 : kind === letter || kind === capital || code === 32 ? 4 : 8))

/**
 * Returns at least a quarter of the UTF-8 bytes: about 3.5 bytes a token for prose and code, 3 for JSON, a token or more for each character
 * of another script, 3 for an emoji, 1 for each byte of encoded bytes. Linear in the length.
 */
export function tokensOf(text: string): number {
  let [sixteenths, start, run] = [0, 0, 0]
  for (let at = 0; at <= text.length; at++) {
    const code = at < text.length ? text.charCodeAt(at) : 0
    if (code < 128 && kinds[code] !== 0) {
      run += weights[code] ?? 0
      continue
    }
    if (at > start) sixteenths += isEncoded(text, start, at) ? (at - start) * 16 : run
    if (at < text.length) sixteenths += code < 128 ? (weights[code] ?? 0) : weightBeyond(code)
    start = at + 1
    run = 0
  }
  return Math.ceil(sixteenths / 16)
}

/** An emoji is two code units of U+D800 to U+DFFF; Latin letters with accents end before U+0250, and CJK begins at U+2E80. */
function weightBeyond(code: number): number {
  if (code < 0x2e80) return code < 0x250 ? 8 : 16
  return code >= 0xd800 && code <= 0xdfff ? 24 : 20
}

/** Tells base64, with long parts or with kinds of characters that alternate, from a path of words, however long that is. */
function isEncoded(text: string, start: number, end: number): boolean {
  if (end - start < encodedRun) return false
  let [changes, part, last] = [0, 0, separator]
  for (let at = start; at < end; at++) {
    const kind = kinds[text.charCodeAt(at)] ?? separator
    part = kind === separator ? 0 : part + 1
    if (part >= encodedRun) return true
    if (kind !== last && kind !== separator && last !== separator) changes++
    last = kind
  }
  return changes * 5 >= end - start
}
