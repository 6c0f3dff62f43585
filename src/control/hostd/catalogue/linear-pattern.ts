/** Matches a pattern in linear time: all states advance together, so that no value makes it backtrack. */

import { PatternError, type PatternNode, parsePattern } from './pattern-syntax.ts'

export type LinearPattern = { readonly source: string; matches(text: string): boolean }

export type CompiledPattern = { readonly ok: true; readonly pattern: LinearPattern } | { readonly ok: false; readonly message: string }

/** A state reads one character, or goes on without one. The last state accepts. */
type State = { readonly has?: (code: number) => boolean; readonly to: number[] }

/** Each character of a value costs at most this many steps. */
const mostStates = 4_000

export function compilePattern(source: string): CompiledPattern {
  try {
    const states: State[] = []
    const start = build(states, parsePattern(source), add(states, { to: [] }))
    return { ok: true, pattern: { source, matches: (text) => runs(states, start, text) } }
  } catch (error) {
    if (error instanceof PatternError) return { ok: false, message: error.message }
    throw error
  }
}

function add(states: State[], state: State): number {
  if (states.length >= mostStates) throw new PatternError('it is too large; use smaller counts')
  return states.push(state) - 1
}

/** Adds the states of `node` before state `after`. @returns the first of them */
function build(states: State[], node: PatternNode, after: number): number {
  if (node.type === 'set') return add(states, { has: node.has, to: [after] })
  if (node.type === 'sequence') return node.items.reduceRight((next, item) => build(states, item, next), after)
  if (node.type === 'choice') return add(states, { to: node.items.map((item) => build(states, item, after)) })
  return buildRepeat(states, node, after)
}

function buildRepeat(states: State[], { item, least, most }: Extract<PatternNode, { type: 'repeat' }>, after: number): number {
  let first = after
  if (most === Number.POSITIVE_INFINITY) {
    const loop: State = { to: [after] }
    first = add(states, loop)
    loop.to.unshift(build(states, item, first))
  } else {
    for (let count = least; count < most; count += 1) first = add(states, { to: [build(states, item, first), after] })
  }
  for (let count = 0; count < least; count += 1) first = build(states, item, first)
  return first
}

function runs(states: readonly State[], start: number, text: string): boolean {
  let active = closed(states, [start])
  for (const sign of text) {
    const code = sign.codePointAt(0) ?? 0
    active = closed(
      states,
      [...active].flatMap((at) => (states[at]?.has?.(code) ? (states[at]?.to ?? []) : [])),
    )
    if (active.size === 0) return false
  }
  return active.has(0)
}

/** Follows every way that reads no character. State 0 accepts. */
function closed(states: readonly State[], from: readonly number[]): Set<number> {
  const found = new Set<number>()
  const left = [...from]
  for (let at = left.pop(); at !== undefined; at = left.pop()) {
    if (found.has(at)) continue
    found.add(at)
    const state = states[at]
    if (state && !state.has) left.push(...state.to)
  }
  return found
}
