/** Judges sed: reads its script command by command, since `e`, `w` and `s///e` run programs and write files. */

import { type Arg, HOLE, literalArg, sure } from '../flow/model.ts'
import { type OptionTable, parseOptions } from '../flow/options.ts'
import { checkPath, shown } from '../flow/paths.ts'
import { searchTexts } from '../flow/search.ts'
import { checkOptions, guard, type Use } from './rule.ts'

const table: OptionTable = {
  data: '-e --expression -l --line-length',
  read: '-f --file',
  attached: '-i',
  flag: '--in-place --quiet --silent --regexp-extended --separate --unbuffered --null-data --zero-terminated --debug --posix --sandbox --follow-symlinks --binary --help --version',
}

export function judgeSed(use: Use, args: readonly Arg[]): undefined {
  const { judge, place } = use
  const parsed = parseOptions(args, table)
  checkOptions(use, parsed)
  const given = parsed.options.filter((option) => /^(-e|--expression|-f|--file)$/.test(option.name))
  if (given.some((option) => /f/.test(option.name[1] === '-' ? (option.name[2] ?? '') : option.name)))
    judge.raise('command.code', 'sed runs a script from a file; write the script out')
  const [program, ...rest] = parsed.operands
  const scripts = given.length > 0 ? given.map((option) => option.value) : [program]
  judgeScripts(use, scripts)
  const files = given.length > 0 ? parsed.operands : rest
  guard(use, { ...parsed, operands: files })
  // Long options may be abbreviated, and no other option begins with an i.
  const inPlace = parsed.options.filter((option) => option.name === '-i' || option.name.startsWith('--i'))
  if (inPlace.some((option) => option.value?.texts.some((text) => /[/*]/.test(text))))
    judge.raise('command.option', 'sed -i writes its backup elsewhere; give a plain suffix')
  for (const file of files) if (sure(file) !== '-') checkPath(judge, file, inPlace.length > 0 ? 'write' : 'read', place)
}

/** Several scripts are the lines of one script: a text that begins in one script continues in the next. */
function judgeScripts(use: Use, scripts: readonly (Arg | undefined)[]): void {
  const texts = scripts.map(sure)
  const joined = texts.length > 1 && !texts.includes(undefined)
  if (!joined && texts.length > 1 && scripts.slice(0, -1).some((script) => script?.texts.some((text) => text.endsWith('\\'))))
    use.judge.raise('command.option', 'sed: the text of one -e continues in the next; write one script')
  for (const script of joined ? [literalArg(texts.join('\n'))] : scripts) if (script) judgeScript(use, script)
}

function judgeScript({ judge, place }: Use, script: Arg): void {
  if (script.kind === 'unknown' || script.kind === 'name' || script.vanishes)
    judge.raise('command.unclear', `the sed script ${shown(script)} is known only when it runs; write it out`)
  for (const text of script.texts) {
    const refused = refusedSed(text.replaceAll(HOLE, '1'))
    if (!refused) continue
    judge.raise('command.option', `sed: ${refused.text}`)
    if (refused.runs !== undefined) searchTexts(judge, [refused.runs], place)
    if (refused.file !== undefined) checkPath(judge, literalArg(refused.file), refused.access ?? 'write', place)
  }
}

/**
 * @returns what a script does beyond editing text, or why it cannot be read. Not every sed lets a bracket hide a delimiter, so both
 * readings are checked.
 */
export function refusedSed(script: string): Stop | undefined {
  const strict = read(script, { brackets: true })
  if (strict) return strict
  const loose = read(script, { brackets: false })
  return loose && !loose.invalid ? loose : undefined
}

type SedSyntax = { readonly brackets: boolean }
/** `invalid`: sed itself would refuse the whole script. `runs`, `file`: the command it would run, the file it would read or write. */
type Stop = {
  readonly text: string
  readonly invalid?: true
  readonly runs?: string
  readonly file?: string
  readonly access?: 'read' | 'write'
}
type SedStep = number | Stop

function read(script: string, way: SedSyntax): Stop | undefined {
  let at = 0
  while (at < script.length) {
    const next = command(script, at, way)
    if (typeof next !== 'number') return next
    at = next
  }
}

function command(text: string, from: number, way: SedSyntax): SedStep {
  const start = from + (/^[\s;{}]*/.exec(text.slice(from))?.[0].length ?? 0)
  if (start >= text.length) return start
  const afterAddress = addresses(text, start, way)
  if (typeof afterAddress !== 'number') return afterAddress
  const at = afterAddress + (/^[\s!]*/.exec(text.slice(afterAddress))?.[0].length ?? 0)
  const letter = text[at] ?? ''
  if (/[={}dDgGhHnNpPxFz]/.test(letter)) return at + 1
  if (letter === '#') return lineEnd(text, at)
  if (/[aic]/.test(letter)) return textEnd(text, at)
  if (/[btT:]/.test(letter)) return labelEnd(text, at)
  if (/[qQlL]/.test(letter)) return at + 1 + (/^[ \t]*\d*/.exec(text.slice(at + 1))?.[0].length ?? 0)
  if (letter === 'y') return delimited(text, at + 1, { count: 2, patterns: 0 }, way)
  if (letter === 's') return substitute(text, at + 1, way)
  const rest = text.slice(at + 1, lineEnd(text, at)).trim()
  const access = /[rR]/.test(letter) ? 'read' : 'write'
  if (/[rRwW]/.test(letter)) return { text: `${letter} reads or writes a file named in the script; use redirections`, file: rest, access }
  if (letter === 'e') return { text: 'e runs a command; run it yourself', runs: rest }
  return { text: `cannot follow the script at ${JSON.stringify(text.slice(at, at + 20))}` }
}

function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end < 0 ? text.length : end + 1
}

/** `a`, `i`, `c`: the text ends at a line end without a backslash before it. Not every sed reads two backslashes as an escaped one. */
function textEnd(text: string, at: number): SedStep {
  let end = lineEnd(text, at)
  for (; end < text.length && text[end - 2] === '\\'; end = lineEnd(text, end))
    if (text[end - 3] === '\\') return { text: 'a line of text ends in more than one backslash' }
  return end
}

/** Not every sed lets a brace end a label; in those, the characters right after the brace belong to the label. */
function labelEnd(text: string, at: number): SedStep {
  const end = at + 1 + (/^[ \t]*[^;\s}]*/.exec(text.slice(at + 1))?.[0].length ?? 0)
  return /^}+[^;\s}]/.test(text.slice(end)) ? { text: 'where a label ends is not plain; put a ; before the }' } : end
}

function addresses(text: string, from: number, way: SedSyntax): SedStep {
  const first = address(text, from, way)
  if (typeof first !== 'number' || first === from) return first
  const comma = /^\s*,\s*/.exec(text.slice(first))
  if (!comma) return first
  const second = address(text, first + comma[0].length, way)
  return second === first + comma[0].length ? { text: 'an address is missing after a comma' } : second
}

function address(text: string, at: number, way: SedSyntax): SedStep {
  const plain = /^(\d+(~\d+)?|\$|[+~]\d+)/.exec(text.slice(at))
  if (plain) return at + plain[0].length
  if (text[at] !== '/' && text[at] !== '\\') return at
  const end = delimited(text, text[at] === '\\' ? at + 1 : at, { count: 1, patterns: 1 }, way)
  return typeof end === 'number' ? end + (/^[IM]*/.exec(text.slice(end))?.[0].length ?? 0) : end
}

/** @returns the position after `count` parts behind the delimiter at `at`; the first `patterns` parts are regular expressions */
function delimited(text: string, at: number, { count, patterns }: { count: number; patterns: number }, { brackets }: SedSyntax): SedStep {
  const delimiter = text[at]
  if (delimiter === undefined || /[\\\sA-Za-z0-9[]|[^ -~]/.test(delimiter)) return { text: 'a delimiter is missing or odd' }
  let done = 0
  for (let index = at + 1; index < text.length; index++) {
    if (text[index] === '\\') index++
    else if (brackets && done < patterns && text[index] === '[') index = bracketEnd(text, index)
    else if (text[index] === delimiter && ++done === count) return index + 1
  }
  return { text: 'a part of the script is not closed', invalid: true }
}

/** @returns the position of the closing bracket of `[]a]`, `[^]a]`, `[[:alpha:]]`; without one, the position of the opening bracket */
function bracketEnd(text: string, at: number): number {
  const set = /^\[\^?\]?(\[[:.=][^\]]*[:.=]\]|[^\]\n])*\]/.exec(text.slice(at))
  return set ? at + set[0].length - 1 : at
}

function substitute(text: string, at: number, way: SedSyntax): SedStep {
  const end = delimited(text, at, { count: 2, patterns: 1 }, way)
  if (typeof end !== 'number') return end
  const flags = /^[^\s;}#]*/.exec(text.slice(end))?.[0] ?? ''
  if (/^[gpiIM\d]*$/.test(flags)) return end + flags.length
  const [before = '', file] = text.slice(end, lineEnd(text, end)).split(/w(.*)/s)
  if (/e/.test(before))
    return {
      text: 's///e runs what it makes; leave e out',
      runs: text
        .slice(at + 1, end - 1)
        .split(text[at] ?? '/')
        .at(-1),
    }
  if (/[ew]/.test(flags)) return { text: 's///w writes a file named in the script; use redirections', file: file?.trim() }
  return { text: `the flags ${JSON.stringify(flags.slice(0, 20))} are unknown`, invalid: true }
}
