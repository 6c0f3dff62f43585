/**
 * Defines an operation of the catalogue: what runs, with which parameters, how long, and how dangerous it is; parses the elements of its argv
 * and the patterns of its parameters.
 */

import { compile, PatternError } from '../../../runtime/rules/text/machine.ts'
import { parseRegex } from '../../../runtime/rules/text/regex.ts'
import type { Risk } from '../hostd-wire.ts'

export const platforms = ['linux', 'freebsd', 'darwin'] as const
export type Platform = (typeof platforms)[number]

type Common = {
  /** Is the default. Absent: the parameter is required. `null`: without it, the elements that name it are left out. */
  readonly fallback?: string | number | null
}

export type Param = Common &
  (
    | { readonly type: 'enum'; readonly values: readonly string[] }
    | { readonly type: 'text'; readonly pattern: LinearPattern; readonly most: number }
    | { readonly type: 'int'; readonly min: number; readonly max: number }
    /** Is an existing path in the folder `under`, reached without any symbolic link. */
    | { readonly type: 'path'; readonly under: string; readonly kind: 'any' | 'file' | 'folder' }
    /** Is several texts, each an element of its own; `count` at most. */
    | { readonly type: 'list'; readonly pattern: LinearPattern; readonly most: number; readonly count: number }
  )

export type Operation = {
  readonly op: string
  readonly about: string
  readonly platforms: readonly Platform[]
  readonly risk: Risk
  readonly approval: boolean
  /** The shared secret may call it, whatever its risk. */
  readonly compat: boolean
  readonly program: string
  /** Lists the arguments after the program. */
  readonly arguments: readonly ArgvElement[]
  readonly params: { readonly [name: string]: Param }
  readonly timeoutMs: number
  readonly outputBytes: number
  readonly env: { readonly [name: string]: string }
  /** Lists exit codes besides 0 that count as done, such as 3 of `systemctl status` for a unit that is stopped. */
  readonly doneCodes: readonly number[]
}

/** Says which users may connect, and how much they may ask for. */
export type ServerRules = {
  readonly uids: readonly number[]
  readonly gids: readonly number[]
  /** Lists the users who may bring approvals: that of the control daemon. */
  readonly controlUids: readonly number[]
  readonly tokenSha256?: string
  readonly connections: number
  readonly concurrent: number
  /** Limits the requests of one user in a minute. */
  readonly perMinute: number
}

export type Catalogue = { readonly server: ServerRules; readonly operations: readonly Operation[] }

type ArgvPiece = { readonly text: string } | { readonly param: string }
export type ArgvElement = readonly ArgvPiece[]

type ParsedElement = { readonly ok: true; readonly element: ArgvElement } | { readonly ok: false; readonly message: string }

/**
 * Parses one element of an argv template: text with `{param}` in it, and `{{` and `}}` for the braces themselves. Each element stays one element,
 * whatever the values are.
 */
export function parseElement(source: string): ParsedElement {
  const element: ArgvPiece[] = []
  let text = ''
  for (const [token, name] of source.matchAll(/\{\{|\}\}|\{([a-z][a-z0-9_]*)\}|[^{}]+|[{}]/g)) {
    if (token === '{{' || token === '}}') text += token[0]
    else if (name !== undefined) {
      if (text !== '') element.push({ text })
      element.push({ param: name })
      text = ''
    } else if (token === '{' || token === '}') {
      return { ok: false, message: `the brace in ${JSON.stringify(source)} begins no parameter such as {name}; write {{ or }} for a brace` }
    } else text += token
  }
  if (text !== '' || element.length === 0) element.push({ text })
  return { ok: true, element }
}

export function paramsOf(element: ArgvElement): string[] {
  return element.flatMap((piece) => ('param' in piece ? [piece.param] : []))
}

/**
 * Inserts the values. A value at the beginning of an element must not look like a flag, and one before another parameter must not contain
 * the text between the two, which would move the border.
 * @returns why the values do not fit
 */
export function fillElement(
  element: ArgvElement,
  values: { readonly [param: string]: string },
): { readonly text: string } | { readonly wrong: string } {
  let filled = ''
  for (const [at, piece] of element.entries()) {
    if ('text' in piece) {
      filled += piece.text
      continue
    }
    const value = values[piece.param] ?? ''
    const border = element.slice(at + 2).some((later) => 'param' in later) ? element[at + 1] : undefined
    if (border && 'text' in border && value.includes(border.text))
      return { wrong: `${piece.param}: must not contain ${JSON.stringify(border.text)}` }
    if (filled === '' && value.startsWith('-')) return { wrong: `${piece.param}: must not begin with "-", which would make it a flag` }
    filled += value
  }
  return { text: filled }
}

export type LinearPattern = { readonly source: string; matches(text: string): boolean }

type CompiledPattern = { readonly ok: true; readonly pattern: LinearPattern } | { readonly ok: false; readonly message: string }

/** Each character of a value costs at most this many steps: a count may be 1,000. */
const mostSteps = 4_000

/**
 * Compiles the pattern of a text parameter with the engine of the rules, which matches in linear time, so that no value makes it backtrack. The
 * pattern covers the whole value, also when it has alternatives.
 */
export function compilePattern(source: string): CompiledPattern {
  if (!source.startsWith('^') || !source.endsWith('$') || source.endsWith('\\$'))
    return { ok: false, message: 'a pattern begins with ^ and ends with $, so that it covers the whole value' }
  try {
    const inner = parseRegex(source.slice(1, -1))
    const whole = { type: 'all', items: [{ type: 'at', place: 'start' }, inner, { type: 'at', place: 'end' }] } as const
    return { ok: true, pattern: { source, matches: compile(whole, mostSteps) } }
  } catch (error) {
    if (error instanceof PatternError) return { ok: false, message: error.message }
    throw error
  }
}
