/** Prepares text for a person or a model: makes hidden characters visible, truncates long text visibly, suggests similar words. */

import { sha256 } from './sha256.ts'

/** Returns one line in which every invisible character reads `\u{1b}`. It is unambiguous: a literal `\u{` becomes `\u{5c}u{`. */
export function visible(text: string): string {
  /*
   * Everything that can change how a line looks without being seen: controls, bidi, zero width, odd spaces, lone surrogates, what has no
   * shape (unassigned, blank Braille, the null note head, fillers), and so many spaces that they fill a row of the terminal.
   */
  const unseen = / {8,}|[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u{1d159}\u{16fe4}\ufffc]|(?! )\p{Zs}/gu
  return text.replaceAll('\\u{', '\\u{5c}u{').replace(unseen, spelled)
}

/**
 * Returns several lines of text for a model. It keeps newlines, tabs and the joiners that emoji and some scripts need. It escapes
 * characters that hide or control other text (control, format and tag characters, text direction) as `visible` does.
 */
export function visibleLines(text: string): string {
  const hidden = /(?![\n\t\u200c\u200d])[\p{C}\p{Zl}\p{Zp}]/gu
  return text.replaceAll('\r\n', '\n').replaceAll('\\u{', '\\u{5c}u{').replace(hidden, spelled)
}

function spelled(found: string): string {
  return `\\u{${found.codePointAt(0)?.toString(16)}}${found.startsWith(' ') ? `*${found.length}` : ''}`
}

/**
 * Truncates the middle and keeps head and tail, so that padding cannot hide a dangerous end. Length and hash are those of the whole text.
 */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text
  const tail = Math.floor(limit / 4)
  const middle = `… [cut: ${text.length} characters, sha256 ${sha256(text.toWellFormed()).slice(0, 16)}] …`
  return `${text.slice(0, limit - tail)} ${middle} ${text.slice(-tail)}`.toWellFormed()
}

/** Puts the text on one line: any amount of white space becomes one space. */
export function flat(text: string): string {
  return text.replace(/\s+/g, ' ')
}

/** Quotes a value for a message: visible, about 80 characters at most. */
export function quote(value: unknown): string {
  return cut(visible(JSON.stringify(value) ?? String(value)), 80)
}
