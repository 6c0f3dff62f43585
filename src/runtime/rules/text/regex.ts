/** Parses the regular expressions that match in linear time: no look-around, no back-references. */

import { any, type CodePoints, compile, type Matcher, type Node, only, PatternError, repeat } from './machine.ts'

const MAX_LENGTH = 1000
const MAX_DEPTH = 50
const MAX_COUNT = 1000

const digits: readonly CodePoints[] = [[48, 57]]
const words: readonly CodePoints[] = [...digits, [65, 90], [95, 95], [97, 122]]
const spaces: readonly CodePoints[] = [
  [9, 13],
  [32, 32],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]
const classes: { readonly [letter: string]: readonly CodePoints[] } = { d: digits, w: words, s: spaces }
const controls: { readonly [letter: string]: string } = { n: '\n', r: '\r', t: '\t', f: '\f', v: '\v', 0: '\0' }

/**
 * Matches anywhere unless anchored. `^` and `$` are the start and end of the text, `.` is any character unless the caller says otherwise.
 * Case-sensitive. @throws PatternError
 */
export function parseRegex(source: string, dot = any): Node {
  if (source.length > MAX_LENGTH) throw new PatternError(`the regex has ${source.length} characters; at most ${MAX_LENGTH} are allowed`)
  const reader = createReader(source, dot)
  const node = options(reader, 0)
  if (reader.peek() !== undefined) throw new PatternError('")" closes nothing; write \\) for the character')
  return node
}

/** Returns a sentence about what is wrong, if something is. */
export function matcherOf(source: string, dot = any): Matcher | string {
  try {
    return compile(parseRegex(source, dot))
  } catch (error) {
    if (error instanceof PatternError) return error.message
    throw error
  }
}

type PatternReader = {
  readonly dot: Node
  peek(): string | undefined
  take(): string
  eat(char: string): boolean
  ahead(text: string): boolean
}

function createReader(source: string, dot: Node): PatternReader {
  const chars = Array.from(source)
  let at = 0
  const peek = () => chars[at]
  function take(): string {
    const char = chars[at++]
    if (char === undefined) throw new PatternError('the regex ends too early')
    return char
  }
  const ahead = (text: string) => chars.slice(at, at + text.length).join('') === text
  const eat = (char: string) => peek() === char && take() === char
  return { dot, peek, take, eat, ahead }
}

function options(reader: PatternReader, depth: number): Node {
  if (depth > MAX_DEPTH) throw new PatternError(`groups are nested more than ${MAX_DEPTH} deep`)
  const found = [sequence(reader, depth)]
  while (reader.eat('|')) found.push(sequence(reader, depth))
  return found.length === 1 && found[0] ? found[0] : { type: 'one', options: found }
}

function sequence(reader: PatternReader, depth: number): Node {
  const items: Node[] = []
  for (let next = reader.peek(); next !== undefined && next !== '|' && next !== ')'; next = reader.peek())
    items.push(repeated(reader, depth))
  return { type: 'all', items }
}

function repeated(reader: PatternReader, depth: number): Node {
  const item = single(reader, depth)
  const times = quantifier(reader)
  if (times === undefined) return item
  reader.eat('?')
  if (quantifier(reader) !== undefined) throw new PatternError('two repeats follow each other; put the first in a group')
  return repeat(item, times[0], times[1])
}

function quantifier(reader: PatternReader): readonly [number, number] | undefined {
  if (reader.eat('*')) return [0, Number.POSITIVE_INFINITY]
  if (reader.eat('+')) return [1, Number.POSITIVE_INFINITY]
  if (reader.eat('?')) return [0, 1]
  if (!reader.eat('{')) return undefined
  const [, least, comma, most] = /^(\d+)(,?)(\d*)$/.exec(until(reader, '}')) ?? []
  if (least === undefined) throw new PatternError('"{" must be followed by counts such as {2} or {1,3}; write \\{ for the character')
  const count = [least, most ?? ''].find((digits) => Number(digits) > MAX_COUNT)
  if (count !== undefined) throw new PatternError(`${count} repeats are too many; at most ${MAX_COUNT} are allowed`)
  const upper = most ? Number(most) : comma ? Number.POSITIVE_INFINITY : Number(least)
  if (upper < Number(least)) throw new PatternError(`{${least},${most}} has its counts the wrong way round`)
  return [Number(least), upper]
}

function until(reader: PatternReader, end: string): string {
  let text = ''
  while (!reader.eat(end)) text += reader.take()
  return text
}

function single(reader: PatternReader, depth: number): Node {
  const char = reader.take()
  if (char === '.') return reader.dot
  if (char === '^') return { type: 'at', place: 'start' }
  if (char === '$') return { type: 'at', place: 'end' }
  if (char === '[') return charClass(reader)
  if (char === '(') return group(reader, depth)
  if (char === '\\') return escaped(reader)
  if ('*+?{'.includes(char)) throw new PatternError(`"${char}" repeats nothing; write \\${char} for the character`)
  return { type: 'set', ranges: [only(char)], negated: false }
}

function group(reader: PatternReader, depth: number): Node {
  if (reader.ahead('?') && !reader.ahead('?:'))
    throw new PatternError('"(?" groups other than (?:…) are not allowed: they need backtracking; write the cases out')
  if (reader.eat('?')) reader.take()
  const node = options(reader, depth + 1)
  if (!reader.eat(')')) throw new PatternError('"(" is never closed; write \\( for the character')
  return node
}

function escaped(reader: PatternReader): Node {
  const letter = reader.take()
  if (letter === 'b') return { type: 'at', place: 'edge' }
  if (letter === 'B') return { type: 'at', place: 'inside' }
  const { ranges, negated } = readEscape(letter, reader)
  return { type: 'set', ranges, negated }
}

function readEscape(letter: string, reader: PatternReader): { readonly ranges: readonly CodePoints[]; readonly negated: boolean } {
  const named = classes[letter.toLowerCase()]
  if (named) return { ranges: named, negated: letter !== letter.toLowerCase() }
  const control = controls[letter]
  if (control !== undefined) return { ranges: [only(control)], negated: false }
  if (letter === 'x' || letter === 'u') return { ranges: [coded(letter, reader)], negated: false }
  if (/[a-zA-Z0-9]/.test(letter))
    throw new PatternError(
      `"\\${letter}" is not allowed; known are \\d \\w \\s \\b and their capitals, \\n \\r \\t \\f \\v \\0, \\xHH, \\uHHHH`,
    )
  return { ranges: [only(letter)], negated: false }
}

function coded(letter: string, reader: PatternReader): CodePoints {
  const digits = Array.from({ length: letter === 'x' ? 2 : 4 }, () => reader.take()).join('')
  if (!/^[0-9a-fA-F]+$/.test(digits)) throw new PatternError(`"\\${letter}${digits}" is not a character code`)
  const code = Number.parseInt(digits, 16)
  return [code, code]
}

function charClass(reader: PatternReader): Node {
  const negated = reader.eat('^')
  const ranges: CodePoints[] = []
  while (!reader.eat(']')) ranges.push(...member(reader))
  return { type: 'set', ranges, negated }
}

function member(reader: PatternReader): readonly CodePoints[] {
  const from = edge(reader)
  if (!reader.ahead('-') || reader.ahead('-]')) return from
  reader.take()
  const to = edge(reader)
  const [first, last] = [from[0]?.[0], to[0]?.[0]]
  const single = from.length === 1 && to.length === 1 && from[0]?.[0] === from[0]?.[1]
  if (!single || first === undefined || last === undefined || first > last)
    throw new PatternError('a range in […] must go from a lower character to a higher one')
  return [[first, last]]
}

function edge(reader: PatternReader): readonly CodePoints[] {
  const char = reader.take()
  if (char !== '\\') return [only(char)]
  const letter = reader.take()
  if (letter === 'b') return [only('\b')]
  const { ranges, negated } = readEscape(letter, reader)
  return negated ? others(ranges) : ranges
}

/** Returns the complement of the ranges, which must be sorted. */
function others(ranges: readonly CodePoints[]): CodePoints[] {
  const gaps: CodePoints[] = []
  let from = 0
  for (const [first, last] of ranges) {
    if (first > from) gaps.push([from, first - 1])
    from = last + 1
  }
  return [...gaps, [from, 0x10ffff]]
}
