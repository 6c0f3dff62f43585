/** Makes text from outside safe to look at: what drives a terminal or hides from the eye is spelled out as `\u001b`. */

/**
 * Everything but newline and tab that a terminal obeys (C0, DEL, C1) or that changes how a line reads without being seen: bidi controls,
 * zero-width and other format characters, fillers, line separators, lone surrogates. The number signs of Arabic and Syriac are visible.
 */
const suspicious =
  /(?![\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2])[\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?![\t\n])\p{Cc}/gu

const pictured = /(?:\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f)$/u
const picture = /^\p{Extended_Pictographic}/u
const emoji = /\p{Emoji}$/u
/** Scripts whose spelling needs the two joiners. */
const joining =
  /[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}]/u

/**
 * Each such character becomes one `\uXXXX` for each of its UTF-16 units, so that JSON is still JSON and equal when it is parsed. A carriage
 * return before a newline is left out. Joiners stay where emoji and scripts are spelled with them.
 */
export function escapeHidden(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(suspicious, spelled)
}

function spelled(found: string, at: number, text: string): string {
  return isSpelling(found, text.slice(Math.max(0, at - 2), at), text.slice(at + found.length, at + found.length + 2)) ? found : code(found)
}

function isSpelling(found: string, before: string, after: string): boolean {
  if (found === '\ufe0f' || found === '\ufe0e') return emoji.test(before)
  if (found !== '\u200d' && found !== '\u200c') return false
  return (
    (found === '\u200d' && pictured.test(before) && picture.test(after)) ||
    (joining.test(before.slice(-1)) && joining.test(String.fromCodePoint(after.codePointAt(0) ?? 0)))
  )
}

function code(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')
}

export type Escaper = {
  /** What can be shown now; the end of a piece waits when the next one decides what it is. */
  push(piece: string): string
  flush(): string
}

/** For text that arrives in pieces, which may be cut within a character or an emoji. */
export function createEscaper(clean: (text: string) => string = escapeHidden): Escaper {
  const state = { before: '', held: '' }
  /** The character before decides over a joiner, too; it is out already. */
  const release = (text: string) => (text === '' ? '' : clean(state.before + text).slice(clean(state.before).length))
  return {
    push(piece) {
      const whole = state.held + piece
      const [end = ''] = /(?:[\r\u200c\u200d]|[\ud800-\udbff])*$/.exec(whole.slice(-longestHeld)) ?? []
      const text = end.length === longestHeld ? whole : whole.slice(0, whole.length - end.length)
      const shown = release(text)
      state.held = whole.slice(text.length)
      if (text !== '') state.before = lastOf(text)
      return shown
    },
    flush() {
      const shown = release(state.held)
      Object.assign(state, { before: '', held: '' })
      return shown
    },
  }
}

/** More of them in a row are no spelling of anything. */
const longestHeld = 8

function lastOf(text: string): string {
  const last = text.slice(-2)
  return /^[\udc00-\udfff]/.test(last) ? last.slice(1) : last
}
