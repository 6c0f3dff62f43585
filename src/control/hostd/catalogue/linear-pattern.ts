/** Compiles the pattern of a text parameter with the engine of the rules, which matches in linear time, so that no value makes it backtrack. */

import { compile } from '../../../runtime/rules/text/machine.ts'
import { PatternError } from '../../../runtime/rules/text/node.ts'
import { parseRegex } from '../../../runtime/rules/text/regex.ts'

export type LinearPattern = { readonly source: string; matches(text: string): boolean }

export type CompiledPattern = { readonly ok: true; readonly pattern: LinearPattern } | { readonly ok: false; readonly message: string }

/** Each character of a value costs at most this many steps: a count may be 1,000. */
const mostSteps = 4_000

/** A pattern covers the whole value, also one with alternatives. */
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
