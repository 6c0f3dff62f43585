/** Parses globs over plain text and over paths. A glob always matches the whole text, never a part of it. */

import { any, type CodePoints, literal, type Node, only, PatternError, repeat } from './machine.ts'

const MAX_LENGTH = 1000
const MAX_DEPTH = 10

const slash: Node = literal('/')
const notSlash: Node = { type: 'set', ranges: [only('/')], negated: true }

/** `*` matches any text, `?` one character; also `[a-z]` and `{this,that}`; `\` makes the next character literal. @throws PatternError */
export function parseGlob(source: string): Node {
  return whole(parse(source, { star: () => repeat(any, 0, Number.POSITIVE_INFINITY), one: any }))
}

/** Parses a path glob, where `*` and `?` stop at a slash and `**` does not. `base` is literal text before the glob. @throws PatternError */
export function parsePathGlob(source: string, base = ''): Node {
  const rest = parse(source, { star: pathStar, one: notSlash })
  return whole({ type: 'all', items: [literal(base), rest] })
}

function whole(node: Node): Node {
  return { type: 'all', items: [{ type: 'at', place: 'start' }, node, { type: 'at', place: 'end' }] }
}

/** `**` with a slash matches any number of folders, `**` alone matches anything, `*` stays within its folder. */
function pathStar(reader: PatternReader): Node {
  if (!reader.eat('*')) return repeat(notSlash, 0, Number.POSITIVE_INFINITY)
  const anything = repeat(any, 0, Number.POSITIVE_INFINITY)
  return reader.eat('/') ? repeat({ type: 'all', items: [anything, slash] }, 0, 1) : anything
}

type Wild = { readonly star: (reader: PatternReader) => Node; readonly one: Node }
type PatternReader = { take(): string | undefined; eat(char: string): boolean }

function parse(source: string, wild: Wild): Node {
  if (source === '') throw new PatternError('an empty glob matches nothing; write "*" for anything')
  if (source.length > MAX_LENGTH) throw new PatternError(`the glob has ${source.length} characters; at most ${MAX_LENGTH} are allowed`)
  const chars = Array.from(source)
  let at = 0
  const eat = (char: string) => chars[at] === char && at++ >= 0
  return sequence({ take: () => chars[at++], eat }, wild, 0).node
}

/** Parses up to the end of the glob, or within braces to the comma or brace that ends this alternative. */
function sequence(reader: PatternReader, wild: Wild, depth: number): { readonly node: Node; readonly ended?: ',' | '}' } {
  if (depth > MAX_DEPTH) throw new PatternError(`braces are nested more than ${MAX_DEPTH} deep`)
  const items: Node[] = []
  for (let char = reader.take(); char !== undefined; char = reader.take()) {
    if (depth > 0 && (char === ',' || char === '}')) return { node: { type: 'all', items }, ended: char }
    items.push(item(char, { reader, wild, depth }))
  }
  if (depth > 0) throw new PatternError('"{" is never closed; write \\{ for the character')
  return { node: { type: 'all', items } }
}

function item(char: string, { reader, wild, depth }: { reader: PatternReader; wild: Wild; depth: number }): Node {
  if (char === '*') return wild.star(reader)
  if (char === '?') return wild.one
  if (char === '[') return charClass(reader)
  if (char === '{') return braces(reader, wild, depth)
  return literal(char === '\\' ? (reader.take() ?? '\\') : char)
}

function braces(reader: PatternReader, wild: Wild, depth: number): Node {
  const options: Node[] = []
  for (;;) {
    const { node, ended } = sequence(reader, wild, depth + 1)
    options.push(node)
    if (ended === '}') return { type: 'one', options }
  }
}

function charClass(reader: PatternReader): Node {
  const negated = reader.eat('!') || reader.eat('^')
  const ranges: CodePoints[] = []
  for (let char = reader.take(); char !== ']' || ranges.length === 0; char = reader.take()) {
    if (char === undefined) throw new PatternError('"[" is never closed; write \\[ for the character')
    ranges.push(rangeFrom(char === '\\' ? (reader.take() ?? char) : char, reader))
  }
  return { type: 'set', ranges, negated }
}

function rangeFrom(from: string, reader: PatternReader): CodePoints {
  const [first] = only(from)
  if (!reader.eat('-')) return [first, first]
  const to = reader.take()
  if (to === undefined || to === ']') throw new PatternError('a "-" in […] must stand between two characters; write \\- for the character')
  const [last] = only(to)
  if (last < first) throw new PatternError(`${from}-${to} in […] goes backwards`)
  return [first, last]
}
