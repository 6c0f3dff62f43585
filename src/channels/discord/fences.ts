/** Where the fenced code blocks of a text are, by Discord's own rule: every run of backticks opens or closes, wherever it stands. */

/** Offsets into the text. What is shown as code is from `body` to `close`; from `start` to `body` is the opening, from `close` to `end` the closing. */
export type Block = {
  readonly start: number
  readonly body: number
  readonly close: number
  readonly end: number
  readonly language: string
}

/** A run longer than ten is a line somebody drew. */
const RUN = /(?<!`)`{3,10}(?!`)/g

/** What may stand between the opening run and the code: a language, perhaps more, up to the end of the line. */
const INFO = /^(?:([\w+.#-]{1,30})(?![^\s]))?[^\n`]{0,100}\n/

/** @returns the blocks in order; one that is never closed is none, for Discord shows it as it was written */
export function blocksOf(text: string): readonly Block[] {
  const runs = [...text.matchAll(RUN)]
  return runs.flatMap((run, n) => {
    const closing = runs[n + 1]
    return n % 2 === 1 || closing === undefined ? [] : [block(text, run, closing)]
  })
}

/** Whether the text ends inside a block that opens on a line of its own; a lone run in the middle of a sentence only speaks of one. */
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
