/** Escapes external text for display: characters that control a terminal or are invisible appear as `\u001b`. */

/**
 * Every character but newline and tab that controls a terminal (C0, DEL, C1) or invisibly changes how a line reads: bidi controls,
 * zero-width and other format characters, fillers, line separators, lone surrogates. The number signs of Arabic and Syriac are visible.
 */
const suspicious =
  /(?![\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2])[\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?![\t\n])\p{Cc}/gu

const pictured = /(?:\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f)$/u
const picture = /^\p{Extended_Pictographic}/u
const emoji = /\p{Emoji}$/u
/** Scripts that need the two joiners in their spelling. */
const joining =
  /[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}]/u

/**
 * Replaces each such character by one `\uXXXX` for each of its UTF-16 units, so that JSON stays valid and parses to an equal value. It
 * removes a carriage return before a newline. It keeps joiners in emoji and in scripts that need them.
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

/** Escapes text that arrives in pieces, even if a piece ends within a character or an emoji. */
export function createEscaper(clean: (text: string) => string = escapeHidden) {
  const state = { before: '', held: '' }
  /** A joiner depends on the character before it, which was already released; so it escapes both and cuts the first one off. */
  const release = (text: string) => (text === '' ? '' : clean(state.before + text).slice(clean(state.before).length))
  return {
    /** Returns the text that is safe to show now; it holds back the end of a piece if the next piece decides how to escape it. */
    push(piece: string): string {
      const whole = state.held + piece
      const text = whole.replace(undecided, '')
      const shown = release(text)
      state.held = whole.slice(text.length)
      if (text !== '') state.before = lastOf(text)
      return shown
    },
    flush(): string {
      const shown = release(state.held)
      Object.assign(state, { before: '', held: '' })
      return shown
    },
  }
}

/** Only these depend on what comes next: half a character, with a joiner that may lead to it, a joiner, and a carriage return. */
const undecided = /[\u200c\u200d]?[\ud800-\udbff]$|[\r\u200c\u200d]$/

function lastOf(text: string): string {
  const last = text.slice(-2)
  return /^[\udc00-\udfff]/.test(last) ? last.slice(1) : last
}
