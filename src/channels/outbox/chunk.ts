/**
 * Splits an answer into pieces that a chat accepts: at lines, then at words, never inside a character, and with every code block closed.
 */

/**
 * Discord allows 2,000 code points. This code counts UTF-16 units: never fewer than code points, and the unit of string length
 * elsewhere.
 */
export const MESSAGE_LIMIT = 2_000

/** A closing fence on its own line. */
const CLOSING = '\n```'

/**
 * Returns the pieces in order, none longer than `limit` (at least 200) and none blank, because chats refuse blank messages; a blank text
 * gives no piece. Joined, the pieces equal the text except for blank space between pieces and the fences that close and reopen a split code
 * block in its language. A text that fits stays unchanged.
 */
export function chunks(text: string, limit = MESSAGE_LIMIT): string[] {
  if (text.length <= limit) return isBlank(text) ? [] : [text]
  const whole = isLeftOpen(text) ? text + CLOSING : text
  return [...pieces({ text: whole, blocks: blocksOf(whole), limit })]
}

type SplitText = { readonly text: string; readonly blocks: readonly CodeBlock[]; readonly limit: number }

function* pieces(source: SplitText): Generator<string> {
  const { text, blocks, limit } = source
  for (let at = 0; at < text.length; ) {
    const inside = blocks.find((block) => block.body <= at && at < block.end)
    if (inside !== undefined && isBlank(text.slice(at, inside.close))) {
      // The previous piece has already closed this block.
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

type Window = SplitText & { readonly at: number; readonly end: number }

/** Returns the end of the piece that begins at `at` and may reach up to `end`. Always greater than `at`. */
function cutAfter({ text, blocks, limit, at, end }: Window): number {
  if (text.length <= end) return text.length
  const block = blocks.find((one) => one.start < end && end < one.end)
  if (block !== undefined) return cutInside({ text, blocks, limit, at, end, block })
  const behind = Math.max(at, blocks.findLast((one) => one.end <= end)?.end ?? 0)
  return lineBorder(text, behind, end) ?? (behind > at ? behind : wordBorder(text, at, end))
}

/** A block with fewer characters than this before the cut moves to the next piece. */
const LEAST = 100

/** A block that fits into one piece moves to the next piece; a longer block is split. */
function cutInside({ text, limit, at, end, block }: Window & { readonly block: CodeBlock }): number {
  const canWait = block.start > at
  if (canWait && block.end - block.start <= limit) return block.start
  const from = Math.max(at, block.body)
  const to = Math.min(end - CLOSING.length, block.close)
  if (canWait && (to - from < LEAST || isBlank(text.slice(from, to)))) return block.start
  return lineBorder(text, from, to) ?? wordBorder(text, from, to)
}

/** Returns the position after the last line break, or right before one. */
function lineBorder(text: string, from: number, to: number): number | undefined {
  const newline = text.slice(from, to + 1).lastIndexOf('\n')
  if (newline < 0) return undefined
  if (newline === to - from && text[to - 1] === '\r') return to - 1
  return Math.min(from + newline + 1, to)
}

/** Returns the position after the last blank; without a blank, between two graphemes; inside a grapheme only when it is too long. */
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

/** Offsets into the text: the opening fence is `start` to `body`, the code is `body` to `close`, the closing fence is `close` to `end`. */
type CodeBlock = { readonly start: number; readonly body: number; readonly close: number; readonly end: number; readonly language: string }

/** A run of more than ten backticks is a decorative line. */
const RUN = /(?<!`)`{3,10}(?!`)/g

/** The text between the opening run and the code: a language, perhaps more, up to the end of the line. */
const INFO = /^(?:([\w+.#-]{1,30})(?![^\s]))?[^\n`]{0,100}\n/

/**
 * Finds the fenced code blocks of a text by Discord's own rule: every run of backticks opens or closes a block, at any position.
 * @returns the closed blocks in order; an unclosed run is not a block, because Discord shows it as plain text
 */
function blocksOf(text: string): readonly CodeBlock[] {
  const runs = [...text.matchAll(RUN)]
  return runs.flatMap((run, n) => {
    const closing = runs[n + 1]
    return n % 2 === 1 || closing === undefined ? [] : [block(text, run, closing)]
  })
}

/** Tells whether the text ends inside a block that opens on its own line; a single run inside a sentence only mentions a fence. */
function isLeftOpen(text: string): boolean {
  const runs = [...text.matchAll(RUN)]
  const last = runs.at(-1)?.index ?? 0
  return runs.length % 2 === 1 && text.slice(text.lastIndexOf('\n', last) + 1, last).trim() === ''
}

function block(text: string, opening: RegExpExecArray, closing: RegExpExecArray): CodeBlock {
  const after = opening.index + opening[0].length
  const info = INFO.exec(text.slice(after, Math.min(after + 140, closing.index)))
  return {
    start: opening.index,
    body: after + (info?.[0].length ?? 0),
    close: closing.index,
    end: closing.index + closing[0].length,
    language: info?.[1] ?? '',
  }
}
