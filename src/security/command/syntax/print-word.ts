/** Prints a word, an expansion or an assignment again from the tree. */

import type { Assignment, ParsedScript, Word } from 'unbash'
import { arithmeticText } from './arithmetic.ts'
import { type Expansion, type Form, formsOf, type Piece } from './pieces.ts'
import { quoteCommand, quoteText } from './quote.ts'

/** `edits` maps words to the safe, equivalent text that the judge chose (a shell's text printed again, `*` as `./*`). */
export type Printing = {
  readonly home: string
  readonly edits: ReadonlyMap<object, string>
  /** Words that print a leading pattern as `./*`. */
  readonly dotted: ReadonlySet<object>
  script(script: ParsedScript): string
}

/** `${x%.ts}` and the like, only where the inner text has a single reading. */
const plainParameter =
  /^\$\{(#?([A-Za-z_]\w*(\[(\d+|[@*])\])?|\d+|[@*#?!$-])|([A-Za-z_]\w*|\d+)((:?[-+=?]|##?|%%?|\/[/#%]?|\^\^?|,,?)[\w./ ,:@%+=*?/-]*|:\d+(:\d+)?|: ?-\d+))\}$/

export function isPlainParameter(text: string): boolean {
  return plainParameter.test(text)
}

export function printWord(word: Word, to: Printing): string {
  return printForms(word, to, quoteText)
}

export function printCommandWord(word: Word, to: Printing): string {
  return printForms(word, to, quoteCommand)
}

function printForms(word: Word, to: Printing, quote: (text: string) => string): string {
  return (
    to.edits.get(word) ??
    formsOf(word, to.home)
      .map((form) => (to.dotted.has(word) && form[0]?.type === 'glob' ? './' : '') + printForm(form, to, quote))
      .join(' ')
  )
}

export function printForm(form: Form, to: Printing, quote = quoteText): string {
  const texts = form.map((piece) => (piece.type === 'literal' && piece.print === undefined ? piece.text : undefined))
  if (!texts.includes(undefined)) return quote(texts.join(''))
  return form.map((piece) => printPiece(piece, to)).join('')
}

/** Prints expansions in braces, so that an adjacent letter does not join the name. */
function printPiece(piece: Piece, to: Printing): string {
  if (piece.type === 'literal') return piece.print ?? quoteText(piece.text)
  if (piece.type !== 'dynamic') return piece.text
  const text = printExpansion(piece.part, to)
  return piece.quoted ? `"${text}"` : text
}

function printExpansion(part: Expansion, to: Printing): string {
  switch (part.type) {
    case 'SimpleExpansion':
      return `\${${part.text.slice(1)}}`
    case 'ParameterExpansion':
      return part.text
    case 'CommandExpansion':
      return part.script && !part.text.startsWith('${') ? `$(${to.script(part.script)})` : part.text
    case 'ProcessSubstitution':
      return part.script ? `${part.operator}(${to.script(part.script)})` : part.text
    case 'ArithmeticExpansion': {
      const text = arithmeticText(part.expression, to.script)
      return text === undefined ? part.text : `$(( ${text} ))`
    }
  }
}

export function printAssignment(assignment: Assignment, to: Printing): string {
  const { name, index, append, value } = assignment
  const target = `${name}${index ? `[${index.text}]` : ''}${append ? '+=' : '='}`
  if (value.type === 'Word') return target + (value.text === '' ? '' : printWord(value, to))
  return `${target}(${value.elements.map((element) => printElement(element, to)).join(' ')})`
}

/** `[key]=value` in an array is syntax, so it keeps its spelling (and is rated high). */
function printElement(element: Word, to: Printing): string {
  return element.text.startsWith('[') ? element.text : printWord(element, to)
}
