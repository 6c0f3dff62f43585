/** Defines the syntax tree of a text pattern, for regexes and globs alike. */

/** Code points from–to, both included. */
export type Range = readonly [from: number, to: number]

export type Node =
  | { readonly type: 'set'; readonly ranges: readonly Range[]; readonly negated: boolean }
  | { readonly type: 'all'; readonly items: readonly Node[] }
  | { readonly type: 'one'; readonly options: readonly Node[] }
  | { readonly type: 'repeat'; readonly item: Node; readonly least: number; readonly most: number }
  | { readonly type: 'at'; readonly place: Place }

/** Zero-width positions: start of the text, end of the text, a word boundary, any position that is not a word boundary. */
export type Place = 'start' | 'end' | 'edge' | 'inside'

/** Reports an invalid pattern: the message says why, and what to write instead. */
export class PatternError extends Error {
  override readonly name = 'PatternError'
}

/** Matches any character, line breaks too; otherwise a line break could bypass a rule. */
export const any: Node = { type: 'set', ranges: [], negated: true }

export function literal(text: string): Node {
  return { type: 'all', items: Array.from(text, (char): Node => ({ type: 'set', ranges: [only(char)], negated: false })) }
}

export function only(char: string): Range {
  const code = char.codePointAt(0) ?? 0
  return [code, code]
}

export function repeat(item: Node, least: number, most: number): Node {
  return { type: 'repeat', item, least, most }
}
