/** Estimates how many tokens a text has for a model whose tokenizer is not known: rather too many than too few. */

/** From this many characters without a break, a text may be encoded bytes (base64, hex, digits), whose every character can be a token. */
const encodedRun = 24

const [separator, lower, upper, digit] = [1, 2, 3, 4]

/** Which kind of a run's character each ASCII character is; 0: it ends the run. */
const kinds = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code)
  if (/[0-9]/.test(character)) return digit
  if (/[a-z]/.test(character)) return lower
  if (/[A-Z]/.test(character)) return upper
  return /[+/=_-]/.test(character) ? separator : 0
})

/**
 * Sixteenths of a token of each ASCII character, measured against the tokenizers of GPT-4, GPT-4o and Llama 3. A letter or space is part of
 * a word; a sign is often a token of its own, and a digit always one for some models.
 */
const weights = Uint8Array.from(kinds, (kind, code) => (kind === digit ? 12 : kind === lower || kind === upper || code === 32 ? 4 : 8))

/**
 * Returns at least a quarter of the UTF-8 bytes: about 3.5 bytes a token for prose and code, 3 for JSON, a token or more for each character
 * of another script, 3 for an emoji, 1 for each byte of encoded bytes. Linear in the length.
 */
export function tokensOf(text: string): number {
  let sixteenths = 0
  let start = 0
  let run = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 128 && kinds[code] !== 0) {
      run += weights[code] ?? 0
      continue
    }
    if (at > start) sixteenths += isEncoded(text, start, at) ? (at - start) * 16 : run
    sixteenths += code < 128 ? (weights[code] ?? 0) : weightBeyond(code)
    start = at + 1
    run = 0
  }
  sixteenths += isEncoded(text, start, text.length) ? (text.length - start) * 16 : run
  return Math.ceil(sixteenths / 16)
}

/** An emoji is two code units of U+D800 to U+DFFF; Latin letters with accents end before U+0250, and CJK begins at U+2E80. */
function weightBeyond(code: number): number {
  if (code < 0x250) return 8
  if (code < 0x2e80) return 16
  return code >= 0xd800 && code <= 0xdfff ? 24 : 20
}

/**
 * Tells whether a part without a separator is long, or kinds of characters alternate as they do in base64: a path of words is not encoded,
 * however long it is.
 */
function isEncoded(text: string, start: number, end: number): boolean {
  if (end - start < encodedRun) return false
  let [changes, part, last] = [0, 0, separator]
  for (let at = start; at < end; at++) {
    const kind = kinds[text.charCodeAt(at)] ?? separator
    if (kind === separator) part = 0
    else if (++part >= encodedRun) return true
    if (kind !== last && kind !== separator && last !== separator) changes++
    last = kind
  }
  return changes * 5 >= end - start
}
