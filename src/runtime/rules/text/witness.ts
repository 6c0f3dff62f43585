/** Generates a text that a pattern probably matches, so that the checker can test rules with a matching call. */

import type { Node, Range } from './node.ts'

const liked: readonly Range[] = [
  [97, 122],
  [48, 57],
  [65, 90],
  [32, 126],
]

/** Marks a word boundary until the characters on both sides are known. */
const EDGE = '\ue000'

/** Returns a short text. It is only a guess: the caller must check that the pattern matches it. */
export function witness(node: Node): string {
  return guess(node).replace(/\ue000+/g, (_edge, at: number, text: string) =>
    isEdge(text.slice(0, at), text.slice(at).replaceAll(EDGE, '')) ? '' : ' ',
  )
}

function isEdge(left: string, right: string): boolean {
  return /\w$/.test(left) !== /^\w/.test(right)
}

function guess(node: Node): string {
  if (node.type === 'set') return String.fromCodePoint(member(node.ranges, node.negated))
  if (node.type === 'all') return node.items.map(guess).join('')
  if (node.type === 'one') return node.options.map(guess).reduce((best, text) => (text.length < best.length ? text : best))
  if (node.type === 'repeat') return guess(node.item).repeat(node.least)
  return node.place === 'edge' ? EDGE : ''
}

function member(ranges: readonly Range[], negated: boolean): number {
  if (!negated) return ranges[0]?.[0] ?? 0
  const outside = (code: number) => !ranges.some(([from, to]) => code >= from && code <= to)
  const free = liked.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, at) => from + at)).find(outside)
  return free ?? Math.min(0x10ffff, Math.max(0, ...ranges.map(([, to]) => to)) + 1)
}
