/** Judges arithmetic: bash evaluates the values of the variables in it as expressions, which may contain commands. */

import type { ArithmeticExpression } from 'unbash'
import { arithmeticInputs, arithmeticText } from '../syntax/arithmetic.ts'
import { type Look, noFeed, type Place } from './model.ts'
import { isNumeric } from './value.ts'

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
