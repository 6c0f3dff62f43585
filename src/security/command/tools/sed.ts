/** sed: its script read command by command, since `e`, `w` and `s///e` run programs and write files. */

import { type Arg, HOLE, sure } from '../flow/model.ts'
import { checkPath, shown } from '../flow/paths.ts'
import { type OptionTable, parseOptions } from './options.ts'
import { checkOptions, guard, type Use } from './rule.ts'

const table: OptionTable = {
  data: '-e --expression -l --line-length',
  read: '-f --file',
  attached: '-i',
  flag: '--in-place --quiet --silent --regexp-extended --separate --unbuffered --null-data --zero-terminated --debug --posix --sandbox --follow-symlinks --binary --help --version',
}

export function judgeSed(use: Use, args: readonly Arg[]): void {
  const { look, place } = use
  const parsed = parseOptions(args, table)
  checkOptions(use, parsed)
  const given = parsed.options.filter((option) => /^(-e|--expression|-f|--file)$/.test(option.name))
  if (given.some((option) => /f/.test(option.name[1] === '-' ? option.name[2] ?? '' : option.name))) look.raise('command.code', 'sed runs a script from a file; write the script out')
  const [program, ...rest] = parsed.operands
  const scripts = given.length > 0 ? given.map((option) => option.value) : [program]
  for (const script of scripts) if (script) judgeScript(use, script)
  const files = given.length > 0 ? parsed.operands : rest
  guard(use, { ...parsed, operands: files })
  const inPlace = parsed.options.filter((option) => option.name === '-i' || option.name === '--in-place')
  if (inPlace.some((option) => option.value?.texts.some((text) => /[/*]/.test(text)))) look.raise('command.option', 'sed -i writes its backup elsewhere; give a plain suffix')
  for (const file of files) if (sure(file) !== '-') checkPath(look, file, inPlace.length > 0 ? 'write' : 'read', place)
}

function judgeScript({ look }: Use, script: Arg): void {
  if (script.kind === 'unknown' || script.kind === 'name' || script.vanishes) {
    return look.raise('command.unclear', `the sed script ${shown(script)} is known only when it runs; write it out`)
  }
  for (const text of script.texts) {
    const refused = refusedSed(text.replaceAll(HOLE, '1'))
    if (refused !== undefined) look.raise('command.option', `sed: ${refused}`)
  }
}

/** What a script does beyond editing text, or that it cannot be read. */
export function refusedSed(script: string): string | undefined {
  const text = script.replace(/\r/g, '')
  let at = 0
  while (at < text.length) {
    const next = command(text, at)
    if (typeof next === 'string') return next
    at = next
  }
}

type Step = number | string

function command(text: string, from: number): Step {
  let at = from
  while (/[\s;{}]/.test(text[at] ?? '')) at++
  if (at >= text.length) return at
  const afterAddress = addresses(text, at)
  if (typeof afterAddress === 'string') return afterAddress
  at = afterAddress
  while (/[\s!]/.test(text[at] ?? '')) at++
  const letter = text[at] ?? ''
  if (/[={}dDgGhHnNpPxFz]/.test(letter)) return at + 1
  if (letter === '#') return lineEnd(text, at)
  if (/[aic]/.test(letter)) return textEnd(text, at)
  if (/[btT:]/.test(letter)) return label(text, at + 1)
  if (/[qQlL]/.test(letter)) return /^\s*\d*/.exec(text.slice(at + 1))?.[0].length ? at + 1 + (/^\s*\d*/.exec(text.slice(at + 1))?.[0].length ?? 0) : at + 1
  if (letter === 'y') return delimited(text, at + 1, 2)
  if (letter === 's') return substitute(text, at + 1)
  if (/[rRwW]/.test(letter)) return `${letter} reads or writes a file named in the script; use redirections`
  if (letter === 'e') return 'e runs a command; run it yourself'
  return `cannot follow the script at ${JSON.stringify(text.slice(at, at + 20))}`
}

function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end < 0 ? text.length : end + 1
}

/** `a`, `i`, `c`: up to a line end without a backslash before it. */
function textEnd(text: string, at: number): number {
  let end = lineEnd(text, at)
  while (end < text.length && text[end - 2] === '\\') end = lineEnd(text, end)
  return end
}

function label(text: string, at: number): number {
  return at + (/^[ \t]*[^;\s}]*/.exec(text.slice(at))?.[0].length ?? 0)
}

function addresses(text: string, from: number): Step {
  const first = address(text, from)
  if (typeof first === 'string' || first === from) return first
  const comma = /^\s*,\s*/.exec(text.slice(first))
  if (!comma) return first
  const second = address(text, first + comma[0].length)
  if (typeof second === 'string') return second
  return second === first + comma[0].length ? 'an address is missing after a comma' : second
}

function address(text: string, at: number): Step {
  const plain = /^(\d+(~\d+)?|\$|[+~]\d+)/.exec(text.slice(at))
  if (plain) return at + plain[0].length
  if (text[at] !== '/' && text[at] !== '\\') return at
  const end = delimited(text, text[at] === '\\' ? at + 1 : at, 1)
  return typeof end === 'string' ? end : end + (/^[IM]*/.exec(text.slice(end))?.[0].length ?? 0)
}

/** After `count` parts behind the delimiter at `at`. A bracket does not hide a delimiter from sed, so none is made an exception of. */
function delimited(text: string, at: number, count: number): Step {
  const delimiter = text[at]
  if (delimiter === undefined || /[\\\n\sA-Za-z0-9]/.test(delimiter)) return 'a delimiter is missing or odd'
  let left = count
  for (let index = at + 1; index < text.length; index++) {
    if (text[index] === '\\') index++
    else if (text[index] === delimiter && --left === 0) return index + 1
  }
  return 'a part of the script is not closed'
}

function substitute(text: string, at: number): Step {
  const end = delimited(text, at, 2)
  if (typeof end === 'string') return end
  const flags = /^[^\s;}#]*/.exec(text.slice(end))?.[0] ?? ''
  if (/^[gpiIM\d]*$/.test(flags)) return end + flags.length
  return /e/.test(flags) ? 's///e runs what it makes; leave e out' : 's///w writes a file named in the script; use redirections'
}
