/** Judges the scripts and expressions inside a word. */

import type { ArithmeticExpression, ParameterExpansionPart, ParsedScript, Word } from 'unbash'
import { arithmeticInputs, arithmeticText } from '../syntax/arithmetic.ts'
import { type Form, formsOf } from '../syntax/pieces.ts'
import { isPlainParameter } from '../syntax/print.ts'
import { type Look, noFeed, type Place } from './model.ts'
import { isNumeric } from './value.ts'

export function walkWord(look: Look, word: Word, place: Place): void {
  for (const form of formsOf(word, look.policy.home)) walkForm(look, form, place)
}

export function walkForm(look: Look, form: Form, place: Place): void {
  for (const piece of form) {
    if (piece.type === 'opaque')
      look.raise('command.unclear', `${JSON.stringify(piece.text.slice(0, 40))} is known only when it runs; write it out`)
    if (piece.type !== 'dynamic') continue
    const { part } = piece
    if (part.type === 'ParameterExpansion') walkParameter(look, part, place)
    if (part.type === 'ArithmeticExpansion') walkArithmetic(look, part.expression, place)
    if (part.type === 'ProcessSubstitution')
      walkInner(look, part, part.script, { ...place, feed: part.operator === '>' ? { ...place.feed, kind: 'unknown' } : noFeed })
    if (part.type === 'CommandExpansion') {
      if (part.text[1] === '{') look.raise('command.unclear', 'only newer shells run a command in braces; write $(command)')
      walkInner(look, part, part.script, { ...place, feed: noFeed })
    }
  }
}

function walkInner(look: Look, part: object, script: ParsedScript | undefined, place: Place): undefined {
  if (!script) return look.raise('command.unparseable', 'a substitution cannot be read')
  const before = look.found.downloads
  const { output } = look.script(script, { ...place, level: place.level + 1, forks: true })
  look.found.outputs.set(part, { ...output, downloads: output.downloads || look.found.downloads > before })
}

function walkParameter(look: Look, part: ParameterExpansionPart, place: Place): void {
  const { operation, index, text } = part
  if (!isPlainParameter(text))
    look.raise('command.unclear', `${JSON.stringify(text.slice(0, 40))} is more than a plain variable; write it out`)
  if (index) walkWord(look, index, place)
  if (!operation) return
  if ('operand' in operation && operation.operand) walkWord(look, operation.operand, place)
  if (operation.type === 'Replace') for (const word of [operation.pattern, operation.replacement]) walkWord(look, word, place)
  if (operation.type === 'Slice') for (const word of [operation.offset, operation.length]) if (word) walkWord(look, word, place)
}

/** Judges arithmetic: bash evaluates the values of the variables in it as expressions, which may contain commands. */
export function walkArithmetic(look: Look, expression: ArithmeticExpression | undefined, place: Place): void {
  if (arithmeticText(expression, () => '') === undefined || !expression) {
    look.raise('command.unclear', 'an arithmetic expression holds more than numbers and plain variables; simplify it')
  }
  if (!expression) return
  const { names, commands, scripts } = arithmeticInputs(expression)
  for (const name of names) checkNumeric(look, name, place)
  for (const script of [...scripts, ...commands.flatMap((part) => part.script ?? [])]) {
    const { output } = look.script(script, { ...place, level: place.level + 1, feed: noFeed, forks: true })
    if (output.kind !== 'number')
      look.raise('command.unclear', "a command's output is evaluated as arithmetic, which may run more commands")
  }
}

export function checkNumeric(look: Look, name: string, place: Place): undefined {
  if (!isNumeric(name, { look, place }))
    look.raise('command.unclear', `$${name} is evaluated as arithmetic but may hold any text; give it a number`)
}
