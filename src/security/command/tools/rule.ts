/** Applies one row of the tool table to the arguments of a command. */

import { type Arg, HOLE, type JudgeContext, scatters, sure, type WalkState } from '../flow/model.ts'
import { type Option, type ParsedOptions, parseOptions } from '../flow/options.ts'
import { checkLoose, checkPath, shown } from '../flow/paths.ts'
import { searchTexts } from '../flow/search.ts'
import type { ToolRule } from './table.ts'

export type Use = { readonly judge: JudgeContext; readonly place: WalkState; readonly name: string }

/** `args` excludes the command word. */
export function applyRule(use: Use, rule: ToolRule, args: readonly Arg[]): ParsedOptions {
  const found = parseOptions(withoutPairs(use, rule, args), rule, { inOrder: rule.inOrder ?? false })
  // Where no operand is a path, a value attached to an unknown option is not a path either.
  const parsed = rule.operands === 'data' ? { ...found, options: found.options.map(withoutLooseValue) } : found
  checkOptions(use, parsed)
  if (rule.guard) guard(use, parsed)
  const operands = withoutPattern(use, rule, parsed)
  checkOperands(use, rule, { operands, parsed })
  return parsed
}

function withoutLooseValue(option: Option): Option {
  return option.meaning === 'flag' ? { ...option, value: undefined } : option
}

/** `--slurpfile name file` of jq. */
function withoutPairs({ judge, place }: Use, { pairs }: ToolRule, args: readonly Arg[]): readonly Arg[] {
  if (!pairs) return args
  const rest: Arg[] = []
  for (let at = 0; at < args.length; at++) {
    const arg = args[at]
    const meaning = arg && pairs[sure(arg) ?? '']
    if (!arg) break
    if (!meaning) rest.push(arg)
    else {
      const value = args[at + 2]
      if (meaning === 'read' && value) checkPath(judge, value, 'read', place)
      at += 2
    }
  }
  return rest
}

export function checkOptions(use: Use, { options, unclear }: ParsedOptions): void {
  const { judge, name } = use
  if (unclear) judge.raise('command.option', `${name} ${shown(unclear)} is not spelled out; write the whole option`)
  for (const option of options) checkOption(use, option)
}

function checkOption({ judge, place, name }: Use, { name: option, meaning, value, arg }: Option): void {
  if (meaning === 'refuse') judge.raise('command.option', `${name} ${option} does more than ${name} should; leave it out`)
  if (meaning === 'exec') {
    judge.raise('command.option', `${name} ${option} runs a program; run it yourself instead`)
    searchTexts(
      judge,
      (value?.texts ?? []).map((text) => text.replace(/^exec=/, '')),
      place,
    )
  }
  if (meaning === 'flag' && arg.kind !== 'number' && /[*?[\u{F8FF}]/u.test(option))
    judge.raise('command.unclear', `${shown(arg)} may be any option; write it out`)
  if (!value) return
  if (meaning === 'read' || meaning === 'write') checkPath(judge, value, meaning, place)
  else if (meaning === 'flag') checkAttached({ judge, place, name }, value)
}

/** Checks a value attached to an unlisted option. */
function checkAttached({ judge, place }: Use, value: Arg): void {
  checkLoose(judge, value, 'write', place)
  if (value.texts.some((text) => text.includes('/')))
    checkPath(judge, { ...value, kind: value.kind === 'unknown' ? 'name' : value.kind }, 'write', place)
}

/** Checks operands that could expand to options: a pattern is printed with `./` before it; any other operand must be rewritten. */
export function guard({ judge, name }: Use, { operands, behind }: Pick<ParsedOptions, 'operands' | 'behind'>): void {
  for (const arg of operands) {
    if (arg.kind === 'literal' || arg.kind === 'number' || behind.includes(arg)) continue
    const apart = scatters(arg) && arg.word !== undefined
    if (!apart && arg.texts.every((text) => !/^([*?[-]|\u{F8FF})/u.test(text))) continue
    for (const word of arg.globs) judge.found.dotted.add(word)
    if ((!apart && arg.globs.length > 0) || isLed(arg)) continue
    judge.raise('command.option', `${name} could take ${shown(arg)} for an option; quote it, and put -- or ./ before it`)
  }
}

/** A name that another program found and passes on unchanged. */
export function isLed({ kind, led, texts }: Arg): boolean {
  return kind === 'name' && led === true && texts.every((text) => text.startsWith(HOLE))
}

function withoutPattern({ judge, name }: Use, { pattern }: ToolRule, { operands, options }: ParsedOptions): readonly Arg[] {
  if (pattern === undefined || options.some((option) => pattern.split(' ').includes(option.name))) return operands
  const [first, ...rest] = operands
  if (first && (first.vanishes || (first.kind === 'unknown' && /^\u{F8FF}/u.test(first.texts[0] ?? ''))) && rest.length > 0) {
    judge.raise('command.unclear', `${name} ${shown(first)} may be any option or nothing; quote it and put -e or -- before it`)
  }
  return rest
}

function checkOperands(
  use: Use,
  { operands: kind }: ToolRule,
  { operands, parsed }: { operands: readonly Arg[]; parsed: ParsedOptions },
): void {
  const { judge, place, name } = use
  const intoFolder = parsed.options.some((option) => /^(-t|--target-directory)$/.test(option.name))
  if (kind === 'none' && operands.length > 0) judge.raise('command.option', `${name} with an operand changes the system; leave it out`)
  for (const [index, arg] of operands.entries()) {
    if (kind === 'data' || kind === 'none') continue
    if (sure(arg) === '-') continue
    const last = index === operands.length - 1 && !intoFolder
    const writes = kind === 'write' || kind === 'move' || (kind === 'copy' && last) || (kind === 'out' && index > 0)
    checkPath(judge, arg, writes ? 'write' : 'read', place)
  }
}
