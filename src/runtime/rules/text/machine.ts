/** Matches patterns in linear time: all alternatives advance together over the text, so no pattern causes backtracking (Thompson, 1968). */

type MachineStep =
  | { readonly do: 'take'; readonly ranges: readonly CodePoints[]; readonly negated: boolean }
  | { readonly do: 'check'; readonly place: Boundary }
  | { readonly do: 'fork'; readonly to: readonly number[] }
  | { readonly do: 'match' }

/** The most steps of a compiled pattern, unless the caller asks for another bound, and the most that any caller gets. */
const [MAX_STEPS, HIGHEST] = [1000, 4000]

/** `steps` times the length of a text bounds the work. */
export type Matcher = { (text: string): boolean; readonly steps: number }

/**
 * Returns true when any part of the text matches; anchor the pattern to match the whole text. @throws PatternError when it is too large.
 */
export function compile(pattern: Node, most = MAX_STEPS): Matcher {
  const steps: MachineStep[] = []
  emit(pattern, steps)
  add(steps, { do: 'match' })
  if (steps.length > most) throw tooLarge(most)
  return Object.assign((text: string) => run(steps, text), { steps: steps.length })
}

function add(steps: MachineStep[], step: MachineStep): number {
  if (steps.length >= HIGHEST) throw tooLarge(HIGHEST)
  return steps.push(step) - 1
}

function tooLarge(most: number): PatternError {
  return new PatternError(`the pattern is too large (more than ${most} steps once its repeats are spelled out)`)
}

/** Appends the pattern's steps; the steps of the rest of the pattern follow them. */
function emit(node: Node, steps: MachineStep[]): void {
  if (node.type === 'set') add(steps, { do: 'take', ranges: node.ranges, negated: node.negated })
  else if (node.type === 'at') add(steps, { do: 'check', place: node.place })
  else if (node.type === 'all') for (const item of node.items) emit(item, steps)
  else if (node.type === 'one') emitOptions(node.options, steps)
  else emitRepeat(node, steps)
}

function emitOptions(options: readonly Node[], steps: MachineStep[]): void {
  const fork = add(steps, { do: 'fork', to: [] })
  const starts: number[] = []
  const ends: number[] = []
  for (const option of options) {
    starts.push(steps.length)
    emit(option, steps)
    ends.push(add(steps, { do: 'fork', to: [] }))
  }
  steps[fork] = { do: 'fork', to: starts }
  for (const end of ends) steps[end] = { do: 'fork', to: [steps.length] }
}

function emitRepeat({ item, least, most }: Extract<Node, { type: 'repeat' }>, steps: MachineStep[]): void {
  if (isEmpty(item)) return
  for (let time = 0; time < least; time++) emit(item, steps)
  if (most === Number.POSITIVE_INFINITY) {
    const fork = add(steps, { do: 'fork', to: [] })
    emit(item, steps)
    add(steps, { do: 'fork', to: [fork] })
    steps[fork] = { do: 'fork', to: [fork + 1, steps.length] }
    return
  }
  const forks: number[] = []
  for (let time = least; time < most; time++) {
    forks.push(add(steps, { do: 'fork', to: [] }))
    emit(item, steps)
  }
  for (const fork of forks) steps[fork] = { do: 'fork', to: [fork + 1, steps.length] }
}

/** Detects nodes that emit no steps at any repetition count; expanding nested counts of such nodes would take forever. */
function isEmpty(node: Node): boolean {
  if (node.type === 'all') return node.items.every(isEmpty)
  return node.type === 'repeat' && (node.most === 0 || isEmpty(node.item))
}

function run(steps: readonly MachineStep[], text: string): boolean {
  const chars = Array.from(text, (char) => char.codePointAt(0) ?? 0)
  let now: number[] = []
  for (let at = 0; at <= chars.length; at++) {
    const reached = reach({ steps, chars, at, from: [...now, 0] })
    if (reached === 'match') return true
    const char = chars[at]
    now = char === undefined ? [] : reached.filter((step) => takes(steps[step], char)).map((step) => step + 1)
  }
  return false
}

type StepSearch = {
  readonly steps: readonly MachineStep[]
  readonly chars: readonly number[]
  readonly at: number
  readonly from: readonly number[]
}

/** Returns every step that is reachable without consuming a character, each once. */
function reach({ steps, chars, at, from }: StepSearch): number[] | 'match' {
  const seen = new Set<number>(from)
  for (const place of seen) {
    const step = steps[place]
    if (step?.do === 'match') return 'match'
    if (step?.do === 'fork') for (const to of step.to) seen.add(to)
    if (step?.do === 'check' && stands(step.place, chars, at)) seen.add(place + 1)
  }
  return [...seen]
}

function takes(step: MachineStep | undefined, char: number): boolean {
  return step?.do === 'take' && step.ranges.some(([from, to]) => char >= from && char <= to) !== step.negated
}

function stands(place: Boundary, chars: readonly number[], at: number): boolean {
  if (place === 'start') return at === 0
  if (place === 'end') return at === chars.length
  return (isWord(chars[at - 1]) !== isWord(chars[at])) === (place === 'edge')
}

function isWord(char: number | undefined): boolean {
  return char !== undefined && /^\w$/.test(String.fromCodePoint(char))
}

/** Code points from–to, both included. */
export type CodePoints = readonly [from: number, to: number]

/** The syntax tree of a text pattern, for regexes and globs alike. */
export type Node =
  | { readonly type: 'set'; readonly ranges: readonly CodePoints[]; readonly negated: boolean }
  | { readonly type: 'all'; readonly items: readonly Node[] }
  | { readonly type: 'one'; readonly options: readonly Node[] }
  | { readonly type: 'repeat'; readonly item: Node; readonly least: number; readonly most: number }
  | { readonly type: 'at'; readonly place: Boundary }

/** Zero-width positions: start of the text, end of the text, a word boundary, any position that is not a word boundary. */
type Boundary = 'start' | 'end' | 'edge' | 'inside'

/** Reports an invalid pattern: the message says why, and what to write instead. */
export class PatternError extends Error {
  override readonly name = 'PatternError'
}

/** Matches any character, line breaks too; otherwise a line break could bypass a rule. */
export const any: Node = { type: 'set', ranges: [], negated: true }

export function literal(text: string): Node {
  return { type: 'all', items: Array.from(text, (char): Node => ({ type: 'set', ranges: [only(char)], negated: false })) }
}

export function only(char: string): CodePoints {
  const code = char.codePointAt(0) ?? 0
  return [code, code]
}

export function repeat(item: Node, least: number, most: number): Node {
  return { type: 'repeat', item, least, most }
}
