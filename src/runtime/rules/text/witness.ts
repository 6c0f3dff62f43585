/** A text that a pattern matches, so that rules can be shown a call that they look at. */

import type { Node, Range } from './node.ts'

const liked: readonly Range[] = [
  [97, 122],
  [48, 57],
  [65, 90],
  [32, 126],
]

/** The shortest of a kind; word edges are not thought of, so try it before you trust it. */
export function witness(node: Node): string {
  if (node.type === 'set') return String.fromCodePoint(member(node.ranges, node.negated))
  if (node.type === 'all') return node.items.map(witness).join('')
  if (node.type === 'one') return node.options.map(witness).reduce((best, text) => (text.length < best.length ? text : best))
  return node.type === 'repeat' ? witness(node.item).repeat(node.least) : ''
}

function member(ranges: readonly Range[], negated: boolean): number {
  if (!negated) return ranges[0]?.[0] ?? 0
  const outside = (code: number) => !ranges.some(([from, to]) => code >= from && code <= to)
  const free = liked.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, at) => from + at)).find(outside)
  return free ?? Math.min(0x10ffff, Math.max(0, ...ranges.map(([, to]) => to)) + 1)
}
