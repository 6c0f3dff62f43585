/** What can be said of a command's text before it is parsed, and of text that cannot be. */

export const maxBytes = 256 * 1024

/** Controls other than tab and newline, text direction, zero width, fillers, odd spaces and line ends, halves of characters. */
const hidden = /[^\P{Cc}\t\n]|[\p{Cf}\p{Zl}\p{Zp}\p{Cs}]|(?! )\p{Zs}|\u034f|[\u115f\u1160\u3164\uffa0\u2800]|\u17b4|\u17b5|[\u180b-\u180d]/u

/** The first character that a reader would not see, as `U+202E`. */
export function hiddenCharacter(text: string): string | undefined {
  const found = hidden.exec(text)?.[0]
  return found === undefined ? undefined : `U+${(found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}

export function isTooLong(text: string): boolean {
  return text.length > maxBytes || (text.length * 3 > maxBytes && new TextEncoder().encode(text).length > maxBytes)
}

/**
 * For text that is too large or broken to walk: whether one of the names stands where a command could. Errs towards yes, so that padding
 * a command beyond a limit never makes its verdict milder.
 */
export function mentionsCommand(text: string, names: readonly string[]): string | undefined {
  const plain = text.replace(/\\\n|["'\\]/g, '')
  return names.find((name) => new RegExp(`(^|[\\s;&|({\`/!])${RegExp.escape(name)}(?=$|[\\s;&|)}\`<>])`, 'm').test(plain))
}

/** The first of the names that begins a command in a text: it stands first, or behind an operator. A folder before it does not matter. */
export function commandsIn(text: string, names: readonly string[]): string | undefined {
  return names.find((name) => new RegExp(`(^|[;|&({\`!\\n])\\s*(\\S*/)?${RegExp.escape(name)}(?=$|[\\s;&|)}\`<>])`).test(text))
}

/** Whether a file name may fit a pattern of the shell; a set that is not closed is taken as it is written, and one that is no set fits. */
export function matchesPattern(pattern: string, name: string): boolean {
  const source = pattern.replace(/\[([!^]?)([^\]]+)\]|[^\w]/g, (char, not: string | undefined, set: string | undefined) => {
    if (set !== undefined) return `[${not ? '^' : ''}${set.replace(/[\\^]/g, '\\$&')}]`
    return char === '*' ? '.*' : char === '?' ? '.' : RegExp.escape(char)
  })
  try {
    return new RegExp(`^${source}$`).test(name)
  } catch {
    return true
  }
}
