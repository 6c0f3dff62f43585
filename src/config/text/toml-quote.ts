/** Quotes untrusted text for a message or a TOML file: on one line, without characters that could control a terminal. */

/** Returns a TOML basic string; messages show text in this form too. */
export function quote(text: string): string {
  const invisible = /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g
  return JSON.stringify(text.toWellFormed()).replace(invisible, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Formats a value as a person would write it in TOML, cut at about 60 characters. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return value.length > 60 ? `${quote(value.slice(0, 57))}… (${value.length} characters)` : quote(value)
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return String(value)
  if (Array.isArray(value)) return `a list of ${value.length}`
  return value instanceof Date ? 'a date' : 'a table'
}
