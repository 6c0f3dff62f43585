/** Judges the shell's builtins: harmless unless they run text, change directory, or take names that the shell evaluates. */

import type { TestExpression, Word } from 'unbash'
import { declarers, riskyBuiltins } from '../names.ts'
import { isPlainPattern } from '../syntax/print.ts'
import { type Arg, type CommandOutcome, couldBe, type JudgeContext, literalArg, sure, type WalkState } from './model.ts'
import { checkPath, shown } from './paths.ts'
import { searchTexts } from './search.ts'
import { argsOf, checkNumeric, isInteger, walkWord } from './word.ts'

type BuiltinCall = { readonly name: string; readonly args: readonly Arg[]; readonly place: WalkState }

export function judgeBuiltin(judge: JudgeContext, { name, args, place }: BuiltinCall): CommandOutcome {
  if (name === 'cd' || name === 'pushd') return changeDirectory(judge, args, place)
  if (name === 'popd' || name === 'dirs') return name === 'popd' ? { cwds: { to: undefined } } : {}
  if (riskyBuiltins.has(name)) return risky(judge, { name, args, place })
  if (name === 'test' || name === '[') walkTestCommand(judge, args, place)
  if (declarers.has(name) || name === 'read' || name === 'unset') checkNames(judge, name, args)
  if (name === 'set') checkSet(judge, args)
  if ((name === 'set' && args.length === 0) || (declarers.has(name) && args.every((arg) => sure(arg)?.startsWith('-')))) {
    judge.raise('command.not_allowed', `${name} alone prints every variable; name the one with echo`)
  }
  if (name === 'let') for (const arg of args) checkLet(judge, arg, place)
  if (name === 'mapfile' || name === 'readarray') checkMapfile(judge, args)
  if (name === 'getopts' && !/^[A-Za-z_]\w*$/.test(sure(args[1]) ?? ''))
    judge.raise('command.unclear', 'getopts needs a plain variable name')
  if (name === 'wait') checkWait(judge, args)
  return {}
}

function changeDirectory(judge: JudgeContext, args: readonly Arg[], place: WalkState): CommandOutcome {
  const operands = args.filter((arg) => !/^(-[LPe@n]+|--)$/.test(sure(arg) ?? ''))
  const [folder = literalArg(judge.policy.home)] = operands
  checkPath(judge, folder, 'read', place)
  const plain = operands.length < 2 && (folder.kind === 'literal' || folder.kind === 'glob')
  if (!plain || folder.texts.some((text) => text === '' || /^(-|[+-]\d+)$/.test(text))) {
    judge.raise('command.unclear', 'which directory is changed to is known only when it runs; name it')
    return { cwds: { to: undefined } }
  }
  return { cwds: { to: joined(place.cwds, folder.texts) } }
}

/** A pattern counts as the one folder it matches, because it has the same depth. */
function joined(cwds: WalkState['cwds'], texts: readonly string[]): WalkState['cwds'] {
  const all = cwds?.flatMap((cwd) => texts.map((text) => (text.startsWith('/') ? text : `${cwd}/${text}`)))
  return all && all.length <= 8 ? all : undefined
}

function risky(judge: JudgeContext, { name, args, place }: BuiltinCall): CommandOutcome {
  judge.raise('command.code', `${name} changes what later words mean, or acts on other processes`)
  if (name === 'jobs') judge.invoke(args.slice(1), place)
  if (name !== 'alias') return {}
  for (const arg of args) {
    const values = arg.texts.map((text) => /=(.*)$/s.exec(text)?.[1] ?? '')
    if (arg.kind === 'literal') for (const value of values) judge.text(value, place, { shared: true })
    else searchTexts(judge, values, place)
  }
  return {}
}

/** The shell evaluates a subscript in a name as arithmetic, including commands in it. */
function checkNames(judge: JudgeContext, name: string, args: readonly Arg[]): void {
  let skip = false
  for (const arg of args) {
    const text = sure(arg)
    if (skip) skip = false
    else if (text !== undefined && name === 'read' && /^-\w*[pdntNui]$/.test(text)) skip = true
    else if (text !== undefined && declarers.has(name) && /^[-+]\w*[nif]/.test(text))
      judge.raise('command.unclear', `${name} ${text} gives variables another meaning`)
    else if (text?.startsWith('-') && !/[[$`]/.test(text)) continue
    else if (!arg.texts.every((one) => /^[A-Za-z_]\w*(=|$)/.test(one)))
      judge.raise('command.unclear', `${name} ${shown(arg)} is not a plain variable name`)
  }
}

const setOptions = /^([-+][euxfCmbhBETavnpt]*o?|errexit|nounset|xtrace|pipefail|noglob|noclobber|--|-|errtrace|allexport|verbose)$/

/** `set -- words` only sets `$1` …. */
function checkSet(judge: JudgeContext, args: readonly Arg[]): void {
  const end = args.findIndex((arg) => /^--?$/.test(sure(arg) ?? ''))
  const options = end < 0 ? args : args.slice(0, end)
  if (!options.every((arg) => setOptions.test(sure(arg) ?? ' ')))
    judge.raise('command.code', 'set with these options changes how the rest is read')
}

function checkLet(judge: JudgeContext, arg: Arg, place: WalkState): undefined {
  const [, target, rest = ''] = /^([A-Za-z_]\w*)(\+\+|--|[-+*/%]?=[\w+*/%() -]+)$/.exec(sure(arg) ?? '') ?? []
  if (target === undefined) return judge.raise('command.unclear', `let ${shown(arg)} is evaluated; use $(( )) with plain variables`)
  for (const name of rest.match(/[A-Za-z_]\w*/g) ?? []) checkNumeric(judge, name, place)
}

/** `-p` takes a variable name, possibly with a subscript. */
function checkWait(judge: JudgeContext, args: readonly Arg[]): void {
  if (args.some((arg) => arg.kind === 'literal' && couldBe(arg, /^-\w*p/))) checkNames(judge, 'wait', args)
  else if (args.some((arg) => arg.kind !== 'literal' && couldBe(arg, /^-/) && (arg.several || args.length > 1)))
    judge.raise('command.unclear', 'what is waited for is known only when it runs; wait for "$!"')
}

function checkMapfile(judge: JudgeContext, args: readonly Arg[]): void {
  if (args.some((arg) => !/^(-t|-[dnOsu]|\d+|[A-Za-z_]\w*|)$/.test(sure(arg) ?? '?')))
    judge.raise('command.unclear', 'mapfile with a callback or odd name is not followed')
}

const fileTests = new Set('-a -b -c -d -e -f -g -h -k -p -r -s -u -w -x -G -L -N -O -S'.split(' '))
const fileComparisons = new Set('-nt -ot -ef'.split(' '))
const numberComparisons = new Set('-eq -ne -lt -le -gt -ge'.split(' '))

/** Judges `[[ … ]]`: the files it looks at, and the operands that bash evaluates as arithmetic. */
export function walkTest(judge: JudgeContext, node: TestExpression, place: WalkState): undefined {
  switch (node.type) {
    case 'TestLogical':
      for (const operand of node.operands) walkTest(judge, operand, place)
      return
    case 'TestNot':
      return walkTest(judge, node.operand, place)
    case 'TestGroup':
      return walkTest(judge, node.expression, place)
    case 'TestUnary':
      walkWord(judge, node.operand, place)
      return unary(judge, node.operator, argsOf(node.operand, { judge, place }), place)
    case 'TestBinary':
      walkWord(judge, node.left, place)
      if (node.operator !== '=~') walkWord(judge, node.right, place)
      else checkRegex(judge, node.right, place)
      return binary(judge, node, place)
  }
}

function checkRegex(judge: JudgeContext, word: Word, place: WalkState): void {
  if (isPlainPattern(word.text)) return
  judge.raise('command.unclear', 'only plain regular expressions are followed after =~')
  walkWord(judge, word, place)
}

function unary(judge: JudgeContext, operator: string, args: readonly Arg[], place: WalkState): undefined {
  for (const arg of args) {
    if (/^-[vR]$/.test(operator) && !/^[A-Za-z_]\w*$/.test(sure(arg) ?? ''))
      judge.raise('command.unclear', `${operator} needs a plain variable name`)
    if (fileTests.has(operator) && arg.kind !== 'unknown') checkPath(judge, arg, 'read', place)
  }
}

function binary(
  judge: JudgeContext,
  { operator, left, right }: Extract<TestExpression, { type: 'TestBinary' }>,
  place: WalkState,
): undefined {
  const sides = [left, right].flatMap((word) => argsOf(word, { judge, place }))
  if (fileComparisons.has(operator)) for (const side of sides) if (side.kind !== 'unknown') checkPath(judge, side, 'read', place)
  if (numberComparisons.has(operator)) for (const side of sides) checkSide(judge, side, place)
}

/** In a number comparison a bare name is a variable. */
function checkSide(judge: JudgeContext, side: Arg, place: WalkState): undefined {
  const name = sure(side)
  if (isInteger(side)) return
  if (name !== undefined && /^[A-Za-z_]\w*$/.test(name)) return checkNumeric(judge, name, place)
  judge.raise('command.unclear', 'an operand of a number comparison may hold any text, which [[ evaluates; use [ instead of [[')
}

/** Judges the builtin `test`: it does no arithmetic, but `-v` takes a subscript. */
function walkTestCommand(judge: JudgeContext, args: readonly Arg[], place: WalkState): void {
  for (const [index, arg] of args.entries()) if (mayLookUp(arg, args[index + 1])) unclearOperator(judge, arg)
  for (const [index, arg] of args.entries()) {
    const operator = sure(arg) ?? ''
    const next = args[index + 1]
    const before = sure(args[index - 1]) ?? ''
    const isOperand = /^(=|==|!=|-[a-z]{2})$/.test(before)
    if (next && !isOperand && (fileTests.has(operator) || /^-[vR]$/.test(operator))) unary(judge, operator, [next], place)
    const previous = args[index - 1]
    if (fileComparisons.has(operator))
      for (const side of [previous, next]) if (side && side.kind !== 'unknown') checkPath(judge, side, 'read', place)
  }
}

/** Tells whether the argument could be `-v` followed by a subscript. Before `=` and the like it is an operand, whatever its text. */
function mayLookUp(arg: Arg, next: Arg | undefined): boolean {
  if (!couldBe(arg, /^-[vR]$/)) return false
  if (arg.kind !== 'literal' && arg.several) return true
  return next !== undefined && !/^([A-Za-z_]\w*|[\])]|[=<>]|==|!=|-([a-z]{2}|[ao]))$/.test(sure(next) ?? '')
}

function unclearOperator(judge: JudgeContext, arg: Arg): void {
  judge.raise('command.unclear', `${shown(arg)} could be -v, which evaluates what follows it; quote it as one operand of = or -n`)
}
