/** Checks the text of a command before it is parsed, and text that cannot be parsed. */

export const maxBytes = 256 * 1024

/** Controls other than tab and newline, text direction, zero width, fillers, unusual spaces and line ends, lone surrogates. */
const hidden = /[^\P{Cc}\t\n]|[\p{Cf}\p{Zl}\p{Zp}\p{Cs}]|(?! )\p{Zs}|\u034f|[\u115f\u1160\u3164\uffa0\u2800]|\u17b4|\u17b5|[\u180b-\u180d]/u

/** @returns the first character that a reader would not see, as `U+202E` */
export function hiddenCharacter(text: string): string | undefined {
  const found = hidden.exec(text)?.[0]
  return found === undefined ? undefined : `U+${(found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}

export function isTooLong(text: string): boolean {
  return text.length > maxBytes || (text.length * 3 > maxBytes && new TextEncoder().encode(text).length > maxBytes)
}

/**
 * For text that is too large or broken to walk: finds a name that stands where a command could. A false match is possible, so that padding
 * a command beyond a limit never gives it a milder verdict.
 */
export function mentionsCommand(text: string, names: readonly string[]): string | undefined {
  const plain = text.replace(/\\\n|["'\\]/g, '')
  return names.find((name) => new RegExp(`(^|[\\s;&|({\`/!])${RegExp.escape(name)}(?=$|[\\s;&|)}\`<>])`, 'm').test(plain))
}

/**
 * @returns the first of the names that begins a command in the text: at the start or after an operator, with or without a folder before it
 */
export function commandsIn(text: string, names: readonly string[]): string | undefined {
  return names.find((name) => new RegExp(`(^|[;|&({\`!\\n])\\s*(\\S*/)?${RegExp.escape(name)}(?=$|[\\s;&|)}\`<>])`).test(text))
}
