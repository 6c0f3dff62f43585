/** Finds the fenced code blocks of a text by Discord's own rule: every run of backticks opens or closes a block, at any position. */

/** Offsets into the text: the opening fence is `start` to `body`, the code is `body` to `close`, the closing fence is `close` to `end`. */
export type Block = {
  readonly start: number
  readonly body: number
  readonly close: number
  readonly end: number
  readonly language: string
}

/** A run of more than ten backticks is a decorative line. */
const RUN = /(?<!`)`{3,10}(?!`)/g

/** The text between the opening run and the code: a language, perhaps more, up to the end of the line. */
const INFO = /^(?:([\w+.#-]{1,30})(?![^\s]))?[^\n`]{0,100}\n/

/** @returns the closed blocks in order; an unclosed run is not a block, because Discord shows it as plain text */
export function blocksOf(text: string): readonly Block[] {
  const runs = [...text.matchAll(RUN)]
  return runs.flatMap((run, n) => {
    const closing = runs[n + 1]
    return n % 2 === 1 || closing === undefined ? [] : [block(text, run, closing)]
  })
}

/** Whether the text ends inside a block that opens on its own line; a single run inside a sentence only mentions a fence. */
export function isLeftOpen(text: string): boolean {
  const runs = [...text.matchAll(RUN)]
  const last = runs.at(-1)?.index ?? 0
  return runs.length % 2 === 1 && text.slice(text.lastIndexOf('\n', last) + 1, last).trim() === ''
}

function block(text: string, opening: RegExpExecArray, closing: RegExpExecArray): Block {
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
