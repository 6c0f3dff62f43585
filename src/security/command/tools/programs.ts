/** Chooses the rules for an allow-listed tool and applies them to its arguments. */

import { type Arg, couldBe, literalArg, sure } from '../flow/model.ts'
import { type Option, type OptionTable, parseOptions } from '../flow/options.ts'
import { checkLoose, checkPath, linkOperands } from '../flow/paths.ts'
import { judgeAwk } from './awk.ts'
import { judgeFind } from './find.ts'
import { judgeGit } from './git.ts'
import { applyRule, checkOptions, guard, type Use } from './rule.ts'
import { judgeBun, judgeMake, judgeNpm } from './runners.ts'
import { judgeSed } from './sed.ts'
import { toolRules } from './table.ts'

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
  const judgeBySyntax = Object.hasOwn(judges, use.name) ? judges[use.name] : judgeByTable
  record(use, judgeBySyntax?.(use, args))
}

/** An "always" rule covers the tool with its sub-command, so both are recorded. */
function record({ judge, name }: Use, sub: string | undefined): void {
  if (!sub) return
  judge.found.executables.delete(name)
  judge.found.executables.add(`${name} ${sub}`)
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

/** Judges a tool that the operator allowed and that has no rule here. */
function checkUnlisted({ judge, place }: Use, arg: Arg): void {
  checkLoose(judge, arg, 'write', place)
  const value = /^-[^=]*=(.*)$/s.exec(sure(arg) ?? '')?.[1] ?? /^-[A-Za-z]([/~.].*)$/s.exec(sure(arg) ?? '')?.[1]
  if (value !== undefined) checkLoose(judge, { ...arg, texts: [value] }, 'write', place)
  if (arg.kind === 'unknown') judge.raise('command.unclear', 'an argument is known only when it runs; write it out')
}

type Details = { readonly args: readonly Arg[]; readonly operands: readonly Arg[]; readonly options: readonly string[] }

function checkDate({ judge }: Use, { operands }: Details): void {
  const sets = operands.some((arg) => !arg.texts.every((text) => text.startsWith('+')))
  if (sets) judge.raise('command.option', 'date with an operand sets the clock; begin a format with +')
}

/** `printf -v` evaluates a subscript. An unknown format could be that option, unless it is the only argument. */
function checkPrintf({ judge, place }: Use, { args, options }: Details): void {
  const [format] = args
  const open = format && !place.external && couldBe(format, /^-v/) && (format.several || args.length > 1)
  if (open || options.includes('-v')) judge.raise('command.unclear', 'printf -v sets a variable by name, subscript and all; use $( )')
}

function checkJq({ judge }: Use, { args }: Details): void {
  const loads = args.some((arg) => arg.texts.some((text) => /(^|[^\w.$"-])(import|include)\s*["#]/.test(text)))
  if (loads) judge.raise('command.option', 'jq import and include read files named in the filter')
}

const table: OptionTable = {
  data: '-b --blocking-factor -K --starting-file -N --newer --after-date -V --label -L --tape-length -H --format --exclude --strip-components --owner --group --mode --mtime --sort --level --quoting-style --record-size --suffix --warning',
  read: '-T --files-from -X --exclude-from --exclude-ignore',
  write: '-g --listed-incremental --index-file --volno-file',
  exec: '-I --use-compress-program --to-command --checkpoint-action -F --info-script --new-volume-script --rsh-command --rmt-command',
  refuse: '-P --absolute-names --remove-files --recursive-unlink --unlink-first -U --transform --xform --one-top-level',
  flag: '--exclude --checkpoint --exclude-vcs --exclude-caches --exclude-backups --extract --get --create --list --append --update --diff --compare --concatenate --catenate --delete --totals --touch --newer --format --to-stdout --file --directory',
}

const located: OptionTable = { ...table, data: `${table.data} -f --file -C --directory` }

/** Judges tar: what it packs, where it unpacks, and the options that run programs. */
function judgeTar(use: Use, args: readonly Arg[]): undefined {
  const { judge, place } = use
  const parsed = parseOptions(unbundled(args), located)
  checkOptions(use, parsed)
  guard(use, parsed)
  const mode = modeOf(parsed.options)
  if (mode === undefined) return judge.raise('command.option', 'tar: whether it packs, unpacks or lists is not plain')
  const packs = mode === 'pack'
  for (const option of parsed.options) if (/^(-f|--file)$/.test(option.name)) checkArchive(use, option, packs)
  for (const option of parsed.options) {
    if (/^(-C|--directory)$/.test(option.name) && option.value) checkPath(judge, option.value, mode === 'unpack' ? 'write' : 'read', place)
  }
  if (mode === 'unpack') checkPath(judge, literalArg('.'), 'write', place)
  if (packs) for (const operand of parsed.operands) checkPath(judge, operand, 'read', place)
}

/** `tar xzf a.tgz`: letters without a dash, whose values follow in order. */
function unbundled(args: readonly Arg[]): readonly Arg[] {
  const [first, ...rest] = args
  const letters = first && sure(first)
  if (letters === undefined || !/^[A-Za-z]+$/.test(letters)) return args
  const valued = [...letters].flatMap((letter) => (/[fbCTXgKNVLHIF]/.test(letter) ? [letter] : []))
  const values = valued.flatMap((letter, index) => [literalArg(`-${letter}`), ...rest.slice(index, index + 1)])
  const flags = [...letters].filter((letter) => !valued.includes(letter)).map((letter) => literalArg(`-${letter}`))
  return [...flags, ...values, ...rest.slice(valued.length)]
}

function modeOf(options: readonly Option[]): 'pack' | 'unpack' | 'list' | undefined {
  const named = (pattern: RegExp) => options.some((option) => pattern.test(option.name))
  if (named(/^(--delete|--concatenate|--catenate|-A)$/)) return
  if (named(/^(-c|-r|-u|--create|--append|--update)$/)) return 'pack'
  if (named(/^(-x|--extract|--get)$/)) return 'unpack'
  return named(/^(-t|--list|-d|--diff|--compare|--version|--help)$/) ? 'list' : undefined
}

/** A colon makes the archive a remote archive, which tar fetches through another program. */
function checkArchive({ judge, place }: Use, { value }: Option, packs: boolean): void {
  if (!value || sure(value) === '-') return
  if (value.texts.some((text) => text.includes(':')))
    judge.raise('command.option', 'tar: an archive name with a colon is on another machine')
  checkPath(judge, value, packs ? 'write' : 'read', place)
}
