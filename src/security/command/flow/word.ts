/** Judges the scripts and expressions inside a word. */

import type { ArithmeticExpression, ParameterExpansionPart, ParsedScript, Word } from 'unbash'
import { arithmeticInputs, arithmeticText } from '../syntax/arithmetic.ts'
import { type Form, formsOf } from '../syntax/pieces.ts'
import { isPlainParameter } from '../syntax/print.ts'
import { type JudgeContext, noFeed, type WalkState } from './model.ts'
import { isNumeric } from './value.ts'

export function walkWord(judge: JudgeContext, word: Word, place: WalkState): void {
  for (const form of formsOf(word, judge.policy.home)) walkForm(judge, form, place)
}

export function walkForm(judge: JudgeContext, form: Form, place: WalkState): void {
  for (const piece of form) {
    if (piece.type === 'opaque')
      judge.raise('command.unclear', `${JSON.stringify(piece.text.slice(0, 40))} is known only when it runs; write it out`)
    if (piece.type !== 'dynamic') continue
    const { part } = piece
    if (part.type === 'ParameterExpansion') walkParameter(judge, part, place)
    if (part.type === 'ArithmeticExpansion') walkArithmetic(judge, part.expression, place)
    if (part.type === 'ProcessSubstitution')
      walkInner(judge, part, part.script, { ...place, feed: part.operator === '>' ? { ...place.feed, kind: 'unknown' } : noFeed })
    if (part.type === 'CommandExpansion') {
      if (part.text[1] === '{') judge.raise('command.unclear', 'only newer shells run a command in braces; write $(command)')
      walkInner(judge, part, part.script, { ...place, feed: noFeed })
    }
  }
}

function walkInner(judge: JudgeContext, part: object, script: ParsedScript | undefined, place: WalkState): undefined {
  if (!script) return judge.raise('command.unparseable', 'a substitution cannot be read')
  const before = judge.found.downloads
  const { output } = judge.script(script, { ...place, level: place.level + 1, forks: true })
  judge.found.outputs.set(part, { ...output, downloads: output.downloads || judge.found.downloads > before })
}

function walkParameter(judge: JudgeContext, part: ParameterExpansionPart, place: WalkState): void {
  const { operation, index, text } = part
  if (!isPlainParameter(text))
    judge.raise('command.unclear', `${JSON.stringify(text.slice(0, 40))} is more than a plain variable; write it out`)
  if (index) walkWord(judge, index, place)
  if (!operation) return
  if ('operand' in operation && operation.operand) walkWord(judge, operation.operand, place)
  if (operation.type === 'Replace') for (const word of [operation.pattern, operation.replacement]) walkWord(judge, word, place)
  if (operation.type === 'Slice') for (const word of [operation.offset, operation.length]) if (word) walkWord(judge, word, place)
}

/** Judges arithmetic: bash evaluates the values of the variables in it as expressions, which may contain commands. */
export function walkArithmetic(judge: JudgeContext, expression: ArithmeticExpression | undefined, place: WalkState): void {
  if (arithmeticText(expression, () => '') === undefined || !expression) {
    judge.raise('command.unclear', 'an arithmetic expression holds more than numbers and plain variables; simplify it')
  }
  if (!expression) return
  const { names, commands, scripts } = arithmeticInputs(expression)
  for (const name of names) checkNumeric(judge, name, place)
  for (const script of [...scripts, ...commands.flatMap((part) => part.script ?? [])]) {
    const { output } = judge.script(script, { ...place, level: place.level + 1, feed: noFeed, forks: true })
    if (output.kind !== 'number')
      judge.raise('command.unclear', "a command's output is evaluated as arithmetic, which may run more commands")
  }
}

export function checkNumeric(judge: JudgeContext, name: string, place: WalkState): undefined {
  if (!isNumeric(name, { judge, place }))
    judge.raise('command.unclear', `$${name} is evaluated as arithmetic but may hold any text; give it a number`)
}
