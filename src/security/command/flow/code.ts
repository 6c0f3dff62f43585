/** Finds the programs that code on an interpreter's command line starts, as far as its string literals show. */

import { commandsIn } from '../command-text.ts'

/** Functions and operators of common languages that start other programs. */
const starts = /\b(system|popen\w*|exec\w*|spawn\w*|subprocess|shell\w*|qx|capture[23]e?|passthru)\b|`|%x/i

/** A string after a comma is an argument of the started program, not the program. */
const strings = /(?<!,\s*)(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|`((?:[^`\\]|\\.)*)`|(?:qx|qw|%x)\s*[({[/|!]([^)}\]/|!]*))/gs

/** `:!ls` of editors, `.shell ls` and `\\! ls` of database shells. */
const escapes = /(?:^|\n)\s*(?::?\\?!|[:.]?(?:shell|system)\s)\s*([^\n]+)/g

/** @returns the first of the names that the code starts or seems to start */
export function startedBy(code: string, names: readonly string[]): string | undefined {
  const quoted = starts.test(code) ? [...code.matchAll(strings)] : []
  const texts = [...quoted, ...code.matchAll(escapes)].map(([, ...parts]) => parts.join('').replace(/\\(.)/gs, '$1'))
  return texts.map((text) => commandsIn(text, names)).find((name) => name !== undefined)
}
