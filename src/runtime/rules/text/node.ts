/** What a pattern over text is made of, whether it was written as a regex or as a glob. */

/** Code points from–to, both included. */
export type Range = readonly [from: number, to: number]

export type Node =
  | { readonly type: 'set'; readonly ranges: readonly Range[]; readonly negated: boolean }
  | { readonly type: 'all'; readonly items: readonly Node[] }
  | { readonly type: 'one'; readonly options: readonly Node[] }
  | { readonly type: 'repeat'; readonly item: Node; readonly least: number; readonly most: number }
  | { readonly type: 'at'; readonly place: Place }

/** Zero-width: the very beginning, the very end, a word's edge, anything but one. */
export type Place = 'start' | 'end' | 'edge' | 'inside'

/** A pattern that cannot be used: the message says why, and what can be written instead. */
export class PatternError extends Error {
  override readonly name = 'PatternError'
}

/** Any character, line breaks too: else a line break would slip past a rule. */
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
