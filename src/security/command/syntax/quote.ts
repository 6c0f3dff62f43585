/** Quotes literals so that bash reads back exactly the same text. */

/** Without quotes they would be syntax. */
const reserved = new Set('if then elif else fi for while until do done case esac select function in time coproc { } ! [[ ]]'.split(' '))

/** Quotes one argument. */
export function quoteText(text: string): string {
  return /^[\w@%+:,./=-]+$/.test(text) || text === ']' ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** Quotes a command word: bash never reads it as an assignment or a reserved word. */
export function quoteCommand(text: string): string {
  if (text === '[') return text
  return text.includes('=') || reserved.has(text) ? `'${text.replaceAll("'", `'\\''`)}'` : quoteText(text)
}
