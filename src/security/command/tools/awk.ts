/** Judges awk: searches its program for code that runs programs, opens files or loads other code. */

import { type Arg, HOLE, literalArg, sure } from '../flow/model.ts'
import { type OptionTable, parseOptions } from '../flow/options.ts'
import { checkPath, shown } from '../flow/paths.ts'
import { searchTexts } from '../flow/search.ts'
import { checkOptions, type Use } from './rule.ts'

const table: OptionTable = {
  data: '-F --field-separator -v --assign -e --source',
  read: '-f --file -E --exec',
  refuse: '-i --include -l --load -o --pretty-print -d --dump-variables -p --profile -D --debug -W',
  flag: '--posix --traditional --sandbox --csv --re-interval --non-decimal-data --optimize --lint --version --help --characters-as-bytes --bignum',
}

export function judgeAwk(use: Use, args: readonly Arg[]): undefined {
  const { judge, place } = use
  const parsed = parseOptions(args, table, { inOrder: true })
  checkOptions(use, parsed)
  const files = parsed.options.filter((option) => option.meaning === 'read')
  const sources = parsed.options.filter((option) => option.name === '-e' || option.name === '--source')
  if (files.length > 0) judge.raise('command.code', 'awk runs a program from a file; write the program out')
  const [program, ...rest] = parsed.operands
  const inside = files.length + sources.length > 0
  for (const source of inside ? sources.map((option) => option.value) : [program]) if (source) judgeProgram(use, source)
  for (const arg of inside ? parsed.operands : rest) {
    if (sure(arg) !== '-' && !arg.texts.every((text) => /^[A-Za-z_]\w*=/.test(text))) checkPath(judge, arg, 'read', place)
  }
}

function judgeProgram({ judge, place }: Use, program: Arg): void {
  if (program.kind === 'unknown' || program.kind === 'name' || program.vanishes)
    judge.raise('command.unclear', `the awk program ${shown(program)} is known only when it runs; use -v for values`)
  for (const text of program.texts) {
    const refused = refusedAwk(text.replaceAll(HOLE, '1'))
    if (refused === undefined) continue
    judge.raise('command.option', `awk: ${refused}`)
    const strings = [...text.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, literal = '']) => literal.replace(/\\(.)/g, '$1'))
    searchTexts(judge, strings, place)
    for (const [, file = ''] of text.matchAll(/>\s*"([^"\\]+)"/g)) checkPath(judge, literalArg(file), 'write', place)
  }
}

/** Replaces the name of a standard stream; a redirection to it writes no file. */
const stream = ' "&" '

const keywordsBeforeRegex = new Set('print printf return else do in case exit'.split(' '))
/** After these words an expression may follow or not. */
const words = new Set('length getline next nextfile break continue delete'.split(' '))

/** @returns what a program does beyond computing and printing, or why it cannot be read */
export function refusedAwk(program: string): string | undefined {
  if (/\bsystem\s*\(|\bgetline\b|@\s*\w|\bextension\s*\(|\\\r?\n/.test(program)) return 'system, getline, @ and line joins are not followed'
  if (/\b(ARGV|ARGC|PROCINFO|FUNCTAB|SYMTAB)\b/.test(program)) return 'ARGV and the like change what is read'
  const stripped = strip(program)
  // A stream name counts only where nothing extends it to another name. After some operators a statement continues on the next line.
  const code = stripped?.replace(/>>?\s*"&"(?=\s*($|[;}\n]))/g, ' ').replace(/(,|&&|\|\||\?|:)\s*\n/g, '$1 ')
  if (code === undefined) return 'the program cannot be told apart from its strings'
  if (code.replaceAll('||', '').includes('|')) return 'a pipe runs a command'
  if (redirects(code)) return 'print > writes a file; redirect the output of awk instead'
}

/** @returns the program with every string, pattern and comment blanked; undefined where a slash has two readings */
function strip(program: string): string | undefined {
  let out = ''
  let at = 0
  while (at < program.length) {
    const char = program[at] ?? ''
    const slash = char === '/' ? slashAt(out) : undefined
    if (slash === 'either' && /[|>"#]/.test(program.slice(at))) return
    const end = char === '"' || slash === 'pattern' ? closing(program, at) : char === '#' ? lineEnd(program, at) : at + 1
    if (end === undefined) return
    const blank = /^"\/dev\/std(out|err)"$/.test(program.slice(at, end)) ? stream : ' "" '
    out += end === at + 1 ? char : char === '#' ? ' ' : blank
    at = end
  }
  return out
}

function slashAt(before: string): 'pattern' | 'division' | 'either' {
  const code = before.slice(-256).replace(/[^\S\n]+$/, '')
  const word = /[A-Za-z_]\w*$/.exec(code)?.[0]
  if (word !== undefined) return keywordsBeforeRegex.has(word) ? 'pattern' : words.has(word) ? 'either' : 'division'
  if (/(\)|\+\+|--|\$|[\r\f\v])$/.test(code)) return 'either'
  return /(\d\.?|\]|")$/.test(code) ? 'division' : 'pattern'
}

function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end < 0 ? text.length : end
}

/** Not every awk ends a pattern at a slash inside brackets, so such a pattern is not followed. */
function closing(text: string, from: number): number | undefined {
  const quote = text[from]
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '\n') return
    else if (quote === '/' && text[at] === '[' && /^\[[^\]]*\//.test(text.slice(at))) return
    else if (text[at] === quote) return at + 1
  }
}

/** A `>` after print and outside parentheses is a redirection, not a comparison. */
function redirects(code: string): boolean {
  return [...code.matchAll(/\bprintf?\b([^;\n}]*)/g)].some(([, rest = '']) => {
    let depth = 0
    for (const char of rest) {
      if (char === '(') depth++
      if (char === ')') depth--
      if (char === '>' && depth <= 0) return true
    }
    return false
  })
}
