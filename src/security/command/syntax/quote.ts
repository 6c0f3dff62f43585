/** Quotes literals so that bash reads back exactly the same text. */

import { reserved } from '../names.ts'

/** Quotes one argument. */
export function quoteText(text: string): string {
  return /^[\w@%+:,./=-]+$/.test(text) || text === ']' ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** Quotes a command word: bash never reads it as an assignment or a reserved word. */
export function quoteCommand(text: string): string {
  if (text === '[') return text
  return text.includes('=') || reserved.has(text) ? `'${text.replaceAll("'", `'\\''`)}'` : quoteText(text)
}
