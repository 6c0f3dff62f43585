/** Chooses the rules for an allow-listed tool and applies them to its arguments. */

import type { Arg } from '../flow/model.ts'
import { couldBe, sure } from '../flow/model.ts'
import { checkLoose, linkOperands } from '../flow/paths.ts'
import { judgeAwk } from './awk.ts'
import { judgeFind } from './find.ts'
import { judgeGit } from './git/git.ts'
import { applyRule, type Use } from './rule.ts'
import { judgeBun, judgeMake, judgeNpm } from './runners.ts'
import { judgeSed } from './sed.ts'
import { toolRules } from './table.ts'
import { judgeTar } from './tar.ts'

/** Tools with their own grammar; each judge returns the sub-command. */
const judges: { readonly [name: string]: (use: Use, args: readonly Arg[]) => string | undefined } = {
  find: judgeFind,
  sed: judgeSed,
  awk: judgeAwk,
  gawk: judgeAwk,
  mawk: judgeAwk,
  nawk: judgeAwk,
  tar: judgeTar,
  git: judgeGit,
  npm: judgeNpm,
  bun: judgeBun,
  make: judgeMake,
  gmake: judgeMake,
}

export function judgeTool(use: Use, args: readonly Arg[]): void {
  const judge = Object.hasOwn(judges, use.name) ? judges[use.name] : judgeByTable
  record(use, judge?.(use, args))
}

/** An "always" rule covers the tool with its sub-command, so both are recorded. */
function record({ look, name }: Use, sub: string | undefined): void {
  if (!sub) return
  look.found.executables.delete(name)
  look.found.executables.add(`${name} ${sub}`)
}

function judgeByTable(use: Use, args: readonly Arg[]): undefined {
  const { name } = use
  const rule = Object.hasOwn(toolRules, name) ? toolRules[name] : undefined
  if (!rule) {
    for (const arg of args) checkUnlisted(use, arg)
    return
  }
  const { operands, options } = applyRule(use, rule, name === 'ln' ? linkOperands(args) : args)
  const details = { args, operands, options: options.map((one) => one.name) }
  if (name === 'date') checkDate(use, details)
  if (name === 'printf') checkPrintf(use, details)
  if (name === 'jq') checkJq(use, details)
}

/** For a tool that the operator allowed and that has no rule here. */
function checkUnlisted({ look, place }: Use, arg: Arg): void {
  checkLoose(look, arg, 'write', place)
  const value = /^-[^=]*=(.*)$/s.exec(sure(arg) ?? '')?.[1] ?? /^-[A-Za-z]([/~.].*)$/s.exec(sure(arg) ?? '')?.[1]
  if (value !== undefined) checkLoose(look, { ...arg, texts: [value] }, 'write', place)
  if (arg.kind === 'unknown') look.raise('command.unclear', 'an argument is known only when it runs; write it out')
}

type Details = { readonly args: readonly Arg[]; readonly operands: readonly Arg[]; readonly options: readonly string[] }

function checkDate({ look }: Use, { operands }: Details): void {
  const sets = operands.some((arg) => !arg.texts.every((text) => text.startsWith('+')))
  if (sets) look.raise('command.option', 'date with an operand sets the clock; begin a format with +')
}

/** `printf -v` evaluates a subscript. An unknown format could be that option, unless it is the only argument. */
function checkPrintf({ look, place }: Use, { args, options }: Details): void {
  const [format] = args
  const open = format && !place.external && couldBe(format, /^-v/) && (format.several || args.length > 1)
  if (open || options.includes('-v')) look.raise('command.unclear', 'printf -v sets a variable by name, subscript and all; use $( )')
}

function checkJq({ look }: Use, { args }: Details): void {
  const loads = args.some((arg) => arg.texts.some((text) => /(^|[^\w.$"-])(import|include)\s*["#]/.test(text)))
  if (loads) look.raise('command.option', 'jq import and include read files named in the filter')
}
