/** Judges `[[ … ]]`, `[ … ]` and `test`: the files they look at, and the operands that bash evaluates as arithmetic. */

import type { TestExpression, Word } from 'unbash'
import { isPlainPattern } from '../syntax/print.ts'
import { checkNumeric } from './evaluate-arithmetic.ts'
import { type Arg, couldBe, type Look, type Place, sure } from './model.ts'
import { checkPath, shown } from './paths.ts'
import { argsOf, isInteger } from './value.ts'
import { walkWord } from './word.ts'

const fileTests = new Set('-a -b -c -d -e -f -g -h -k -p -r -s -u -w -x -G -L -N -O -S'.split(' '))
const fileComparisons = new Set('-nt -ot -ef'.split(' '))
const numberComparisons = new Set('-eq -ne -lt -le -gt -ge'.split(' '))

export function walkTest(look: Look, node: TestExpression, place: Place): undefined {
  switch (node.type) {
    case 'TestLogical':
      for (const operand of node.operands) walkTest(look, operand, place)
      return
    case 'TestNot':
      return walkTest(look, node.operand, place)
    case 'TestGroup':
      return walkTest(look, node.expression, place)
    case 'TestUnary':
      walkWord(look, node.operand, place)
      return unary(look, node.operator, argsOf(node.operand, { look, place }), place)
    case 'TestBinary':
      walkWord(look, node.left, place)
      if (node.operator !== '=~') walkWord(look, node.right, place)
      else checkRegex(look, node.right, place)
      return binary(look, node, place)
  }
}

function checkRegex(look: Look, word: Word, place: Place): void {
  if (isPlainPattern(word.text)) return
  look.raise('command.unclear', 'only plain regular expressions are followed after =~')
  walkWord(look, word, place)
}

function unary(look: Look, operator: string, args: readonly Arg[], place: Place): undefined {
  for (const arg of args) {
    if (/^-[vR]$/.test(operator) && !/^[A-Za-z_]\w*$/.test(sure(arg) ?? ''))
      look.raise('command.unclear', `${operator} needs a plain variable name`)
    if (fileTests.has(operator) && arg.kind !== 'unknown') checkPath(look, arg, 'read', place)
  }
}

function binary(look: Look, { operator, left, right }: Extract<TestExpression, { type: 'TestBinary' }>, place: Place): undefined {
  const sides = [left, right].flatMap((word) => argsOf(word, { look, place }))
  if (fileComparisons.has(operator)) for (const side of sides) if (side.kind !== 'unknown') checkPath(look, side, 'read', place)
  if (numberComparisons.has(operator)) for (const side of sides) checkSide(look, side, place)
}

/** In a number comparison a bare name is a variable. */
function checkSide(look: Look, side: Arg, place: Place): undefined {
  const name = sure(side)
  if (isInteger(side)) return
  if (name !== undefined && /^[A-Za-z_]\w*$/.test(name)) return checkNumeric(look, name, place)
  look.raise('command.unclear', 'an operand of a number comparison may hold any text, which [[ evaluates; use [ instead of [[')
}

/** Judges the builtin `test`: it does no arithmetic, but `-v` takes a subscript. */
export function walkTestCommand(look: Look, args: readonly Arg[], place: Place): void {
  for (const [index, arg] of args.entries()) if (mayLookUp(arg, args[index + 1])) unclearOperator(look, arg)
  for (const [index, arg] of args.entries()) {
    const operator = sure(arg) ?? ''
    const next = args[index + 1]
    const before = sure(args[index - 1]) ?? ''
    const isOperand = /^(=|==|!=|-[a-z]{2})$/.test(before)
    if (next && !isOperand && (fileTests.has(operator) || /^-[vR]$/.test(operator))) unary(look, operator, [next], place)
    const previous = args[index - 1]
    if (fileComparisons.has(operator))
      for (const side of [previous, next]) if (side && side.kind !== 'unknown') checkPath(look, side, 'read', place)
  }
}

/** Whether the argument could be `-v` followed by a subscript. Before `=` and the like it is an operand, whatever its text. */
function mayLookUp(arg: Arg, next: Arg | undefined): boolean {
  if (!couldBe(arg, /^-[vR]$/)) return false
  if (arg.kind !== 'literal' && arg.several) return true
  return next !== undefined && !/^([A-Za-z_]\w*|[\])]|[=<>]|==|!=|-([a-z]{2}|[ao]))$/.test(sure(next) ?? '')
}

function unclearOperator(look: Look, arg: Arg): void {
  look.raise('command.unclear', `${shown(arg)} could be -v, which evaluates what follows it; quote it as one operand of = or -n`)
}
