/** Cuts an answer into pieces that Discord accepts: at lines, then at words, never inside a character, and with every code block whole or closed. */

import { type Block, blocksOf, isLeftOpen } from './fences.ts'

/**
 * Discord allows 2,000 code points. UTF-16 units are counted here: never fewer than those, and what the length of a string is everywhere else.
 */
export const MESSAGE_LIMIT = 2_000

/** What a closing fence may need on a line of its own. */
const CLOSING = '\n```'

/**
 * The pieces in order, none longer than `limit` (from 200 up), none blank: Discord refuses those, so text that is all blank gives none. Joined
 * they are the text again, but for blank stretches between two pieces and the fences that close a cut code block and open it again in its
 * language. A text that fits is left as it is.
 */
export function chunks(text: string, limit = MESSAGE_LIMIT): string[] {
  if (text.length <= limit) return isBlank(text) ? [] : [text]
  const whole = isLeftOpen(text) ? text + CLOSING : text
  return [...pieces({ text: whole, blocks: blocksOf(whole), limit })]
}

type Source = { readonly text: string; readonly blocks: readonly Block[]; readonly limit: number }

function* pieces(source: Source): Generator<string> {
  const { text, blocks, limit } = source
  for (let at = 0; at < text.length; ) {
    const inside = blocks.find((block) => block.body <= at && at < block.end)
    if (inside !== undefined && isBlank(text.slice(at, inside.close))) {
      // The piece before has closed it already.
      at = inside.end
      continue
    }
    const opening = inside === undefined ? '' : `\`\`\`${inside.language}\n`
    const to = cutAfter({ ...source, at, end: at + limit - opening.length })
    const part = text.slice(at, to)
    const isCut = blocks.some((block) => block.body < to && to < block.end)
    if (!isBlank(part)) yield opening + part + closing(part, isCut)
    at = to
  }
}

function closing(part: string, isCut: boolean): string {
  if (!isCut) return ''
  return part.endsWith('\n') ? CLOSING.slice(1) : CLOSING
}

type Window = Source & { readonly at: number; readonly end: number }

/** Where the piece from `at` ends if it may reach up to `end`. Always past `at`. */
function cutAfter({ text, blocks, limit, at, end }: Window): number {
  if (text.length <= end) return text.length
  const block = blocks.find((one) => one.start < end && end < one.end)
  if (block !== undefined) return cutInside({ text, blocks, limit, at, end, block })
  const behind = Math.max(at, blocks.findLast((one) => one.end <= end)?.end ?? 0)
  return lineBorder(text, behind, end) ?? (behind > at ? behind : wordBorder(text, at, end))
}

/** With less of a block than this before the cut it rather waits for the next piece. */
const LEAST = 100

/** A block that fits a piece of its own waits for that; any other is cut. */
function cutInside({ text, limit, at, end, block }: Window & { readonly block: Block }): number {
  const canWait = block.start > at
  if (canWait && block.end - block.start <= limit) return block.start
  const from = Math.max(at, block.body)
  const to = Math.min(end - CLOSING.length, block.close)
  if (canWait && (to - from < LEAST || isBlank(text.slice(from, to)))) return block.start
  return lineBorder(text, from, to) ?? wordBorder(text, from, to)
}

/** After the last line break, or right before one. */
function lineBorder(text: string, from: number, to: number): number | undefined {
  const newline = text.slice(from, to + 1).lastIndexOf('\n')
  if (newline < 0) return undefined
  if (newline === to - from && text[to - 1] === '\r') return to - 1
  return Math.min(from + newline + 1, to)
}

/** After the last blank; without any, between two characters as people see them; and if one of those is too long, inside it. */
function wordBorder(text: string, from: number, to: number): number {
  const seen = new Intl.Segmenter('en', { granularity: 'grapheme' }).segment(text.slice(from, to + 100))
  const startAt = (offset: number) => seen.containing(offset)?.index ?? offset
  for (let offset = to - from; offset > 0; offset -= 1) {
    if (/\s/.test(text.charAt(from + offset - 1)) && startAt(offset) === offset) return from + offset
  }
  return from + (startAt(to - from) || codePointStart(text, from, to))
}

function codePointStart(text: string, from: number, to: number): number {
  const isTorn = /^[\ud800-\udbff][\udc00-\udfff]/.test(text.slice(to - 1, to + 1))
  return to - from - (isTorn ? 1 : 0)
}

function isBlank(text: string): boolean {
  return text.trim() === ''
}
