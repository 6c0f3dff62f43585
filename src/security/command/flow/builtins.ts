/** Judges the shell's builtins: harmless unless they run text, change directory, or take names that the shell evaluates. */

import { declarers, riskyBuiltins } from '../names.ts'
import { checkNumeric } from './evaluate-arithmetic.ts'
import { type Arg, couldBe, type Look, literalArg, type Outcome, type Place, sure } from './model.ts'
import { checkPath, shown } from './paths.ts'
import { searchTexts } from './search.ts'
import { walkTestCommand } from './test-expression.ts'

type Called = { readonly name: string; readonly args: readonly Arg[]; readonly place: Place }

export function judgeBuiltin(look: Look, { name, args, place }: Called): Outcome {
  if (name === 'cd' || name === 'pushd') return changeDirectory(look, args, place)
  if (name === 'popd' || name === 'dirs') return name === 'popd' ? { cwds: { to: undefined } } : {}
  if (riskyBuiltins.has(name)) return risky(look, { name, args, place })
  if (name === 'test' || name === '[') walkTestCommand(look, args, place)
  if (declarers.has(name) || name === 'read' || name === 'unset') checkNames(look, name, args)
  if (name === 'set') checkSet(look, args)
  if ((name === 'set' && args.length === 0) || (declarers.has(name) && args.every((arg) => sure(arg)?.startsWith('-')))) {
    look.raise('command.not_allowed', `${name} alone prints every variable; name the one with echo`)
  }
  if (name === 'let') for (const arg of args) checkLet(look, arg, place)
  if (name === 'mapfile' || name === 'readarray') checkMapfile(look, args)
  if (name === 'getopts' && !/^[A-Za-z_]\w*$/.test(sure(args[1]) ?? ''))
    look.raise('command.unclear', 'getopts needs a plain variable name')
  if (name === 'wait') checkWait(look, args)
  return {}
}

function changeDirectory(look: Look, args: readonly Arg[], place: Place): Outcome {
  const operands = args.filter((arg) => !/^(-[LPe@n]+|--)$/.test(sure(arg) ?? ''))
  const [folder = literalArg(look.policy.home)] = operands
  checkPath(look, folder, 'read', place)
  const plain = operands.length < 2 && (folder.kind === 'literal' || folder.kind === 'glob')
  if (!plain || folder.texts.some((text) => text === '' || /^(-|[+-]\d+)$/.test(text))) {
    look.raise('command.unclear', 'which directory is changed to is known only when it runs; name it')
    return { cwds: { to: undefined } }
  }
  return { cwds: { to: joined(place.cwds, folder.texts) } }
}

/** A pattern counts as the one folder it matches, because it has the same depth. */
function joined(cwds: Place['cwds'], texts: readonly string[]): Place['cwds'] {
  const all = cwds?.flatMap((cwd) => texts.map((text) => (text.startsWith('/') ? text : `${cwd}/${text}`)))
  return all && all.length <= 8 ? all : undefined
}

function risky(look: Look, { name, args, place }: Called): Outcome {
  look.raise('command.code', `${name} changes what later words mean, or acts on other processes`)
  if (name === 'jobs') look.invoke(args.slice(1), place)
  if (name !== 'alias') return {}
  for (const arg of args) {
    const values = arg.texts.map((text) => /=(.*)$/s.exec(text)?.[1] ?? '')
    if (arg.kind === 'literal') for (const value of values) look.text(value, place, { shared: true })
    else searchTexts(look, values, place)
  }
  return {}
}

/** The shell evaluates a subscript in a name as arithmetic, including commands in it. */
function checkNames(look: Look, name: string, args: readonly Arg[]): void {
  let skip = false
  for (const arg of args) {
    const text = sure(arg)
    if (skip) skip = false
    else if (text !== undefined && name === 'read' && /^-\w*[pdntNui]$/.test(text)) skip = true
    else if (text !== undefined && declarers.has(name) && /^[-+]\w*[nif]/.test(text))
      look.raise('command.unclear', `${name} ${text} gives variables another meaning`)
    else if (text?.startsWith('-') && !/[[$`]/.test(text)) continue
    else if (!arg.texts.every((one) => /^[A-Za-z_]\w*(=|$)/.test(one)))
      look.raise('command.unclear', `${name} ${shown(arg)} is no plain variable name`)
  }
}

const setOptions = /^([-+][euxfCmbhBETavnpt]*o?|errexit|nounset|xtrace|pipefail|noglob|noclobber|--|-|errtrace|allexport|verbose)$/

/** `set -- words` only sets `$1` …. */
function checkSet(look: Look, args: readonly Arg[]): void {
  const end = args.findIndex((arg) => /^--?$/.test(sure(arg) ?? ''))
  const options = end < 0 ? args : args.slice(0, end)
  if (!options.every((arg) => setOptions.test(sure(arg) ?? ' ')))
    look.raise('command.code', 'set with these options changes how the rest is read')
}

function checkLet(look: Look, arg: Arg, place: Place): undefined {
  const [, target, rest = ''] = /^([A-Za-z_]\w*)(\+\+|--|[-+*/%]?=[\w+*/%() -]+)$/.exec(sure(arg) ?? '') ?? []
  if (target === undefined) return look.raise('command.unclear', `let ${shown(arg)} is evaluated; use $(( )) with plain variables`)
  for (const name of rest.match(/[A-Za-z_]\w*/g) ?? []) checkNumeric(look, name, place)
}

/** `-p` takes a variable name, possibly with a subscript. */
function checkWait(look: Look, args: readonly Arg[]): void {
  if (args.some((arg) => arg.kind === 'literal' && couldBe(arg, /^-\w*p/))) checkNames(look, 'wait', args)
  else if (args.some((arg) => arg.kind !== 'literal' && couldBe(arg, /^-/) && (arg.several || args.length > 1)))
    look.raise('command.unclear', 'what is waited for is known only when it runs; wait for "$!"')
}

function checkMapfile(look: Look, args: readonly Arg[]): void {
  if (args.some((arg) => !/^(-t|-[dnOsu]|\d+|[A-Za-z_]\w*|)$/.test(sure(arg) ?? '?')))
    look.raise('command.unclear', 'mapfile with a callback or odd name is not followed')
}
