/** Literals spelled so that bash reads back exactly the same text. */

import { reserved } from '../names.ts'

/** One argument. */
export function quoteText(text: string): string {
  return /^[\w@%+:,./=-]+$/.test(text) || text === ']' ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** A command word: never an assignment, never a reserved word. */
export function quoteCommand(text: string): string {
  if (text === '[') return text
  return text.includes('=') || reserved.has(text) ? `'${text.replaceAll("'", `'\\''`)}'` : quoteText(text)
}
