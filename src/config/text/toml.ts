/**
 * Parses TOML and reports every syntax error in one pass: it reports a broken line, removes it, and parses the rest again. Writes values,
 * and quotes untrusted text for messages.
 */

import { parse, TomlError } from 'smol-toml'
import { isObject } from '../../kit/json.ts'
import { locate, type TextPosition } from './locate.ts'

type SyntaxProblem = { readonly line: number; readonly column: number; readonly message: string }

export type TomlDocument = {
  /** The part that could be parsed. Dates are Date objects; integers beyond 2^53 are bigints. */
  readonly data: { readonly [key: string]: unknown }
  readonly problems: readonly SyntaxProblem[]
  /** Returns the position of a dotted path. Scans the text on the first call, so a file without errors costs nothing. */
  place(path: string): TextPosition | undefined
}

const maxProblems = 20

export function readToml(text: string): TomlDocument {
  const problems: SyntaxProblem[] = []
  let rest = withoutComments(text)
  for (;;) {
    const result = attempt(rest)
    if ('data' in result) return document(result.data, rest, problems)
    problems.push(result)
    const shorter = problems.length < maxProblems ? without(rest, result.line) : undefined
    if (shorter === undefined) return document({}, '', problems)
    rest = shorter
  }
}

/**
 * Empties comment lines with one native replace: in a cold process the parser's own loop over them takes longer than the rest of parsing.
 * Does nothing if a multi-line string could contain such a line.
 */
function withoutComments(text: string): string {
  const spared = !text.includes('#') || text.includes('"""') || text.includes("'''")
  return spared ? text : text.replace(commentLine, '')
}

/** Excludes control characters, so that the parser still rejects them. */
const commentLine = /^[ \t]*#[\t -~\u0080-\uffff]*$/gm

function document(data: TomlDocument['data'], text: string, problems: readonly SyntaxProblem[]): TomlDocument {
  const scanned: ReadonlyMap<string, TextPosition>[] = []
  const place = (path: string) => {
    if (scanned[0] === undefined) scanned.push(locate(text))
    return scanned[0]?.get(path)
  }
  return { data, problems, place }
}

function attempt(text: string): { data: TomlDocument['data'] } | SyntaxProblem {
  try {
    return { data: parse(text, { integersAsBigInt: 'asNeeded', maxDepth: 50 }) }
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    // Only the first line: the other lines quote the file, which may contain a secret.
    const said = (error.message.split('\n')[0] ?? '').replace('Invalid TOML document: ', '')
    return { line: error.line, column: error.column, message: `not valid TOML: ${said}${hints[said] ?? ''}` }
  }
}

const hints: { readonly [said: string]: string } = {
  'invalid value': '; text needs quotes (name = "text"), true and false are written small',
  'control characters are not allowed in strings': '; a quote is probably missing at the end of the text',
  'illegal character in key': '; a line is either name = value or [section]',
  'unexpected end of key': '; a line is either name = value or [section]',
  'unfinished string': '; a quote is missing',
  'expected comma or end of structure': '; a comma or a closing bracket is missing, here or above',
  'trying to redefine an already defined table or value': '; this name stands twice, keep one',
  'unrecognised escape sequence': '; write \\\\ for a backslash, or use single quotes',
}

/** Empties one line, or the whole section if the line is a broken [section] header; returns `undefined` when the line is already empty. */
function without(text: string, line: number): string | undefined {
  const lines = text.split('\n')
  const bad = lines[line - 1]
  if (bad === undefined || bad.trim() === '') return undefined
  const isHeader = bad.trimStart().startsWith('[')
  const next = lines.findIndex((other, index) => index >= line && other.trimStart().startsWith('['))
  const end = isHeader ? (next === -1 ? lines.length : next) : line
  return lines.map((each, index) => (index >= line - 1 && index < end ? '' : each)).join('\n')
}

/**
 * Returns a TOML basic string, on one line and without characters that could control a terminal: messages show untrusted text in this form
 * too.
 */
export function quote(text: string): string {
  const invisible = /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g
  return JSON.stringify(text.toWellFormed()).replace(invisible, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Formats a value as a person would write it in TOML, cut at about 60 characters. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return value.length > 60 ? `${quote(value.slice(0, 57))}… (${value.length} characters)` : quote(value)
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return String(value)
  if (Array.isArray(value)) return `a list of ${value.length}`
  return value instanceof Date ? 'a date' : 'a table'
}

/** Formats a value as TOML; numbers, booleans and quoted text are spelled as in JSON. */
export function tomlValue(value: unknown): string {
  if (typeof value === 'string') return quote(value)
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(', ')}]`
  if (!isObject(value)) return String(value)
  const members = Object.entries(value).map(([key, member]) => `${quote(key)} = ${tomlValue(member)}`)
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`
}
