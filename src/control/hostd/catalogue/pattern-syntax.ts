/** Parses the patterns of text parameters: the part of regular expressions that can be matched in linear time. */

/** `set` is one character. `most` is Infinity for `*` and `+`. */
export type PatternNode =
  | { readonly type: 'set'; readonly has: (code: number) => boolean }
  | { readonly type: 'sequence'; readonly items: readonly PatternNode[] }
  | { readonly type: 'choice'; readonly items: readonly PatternNode[] }
  | { readonly type: 'repeat'; readonly item: PatternNode; readonly least: number; readonly most: number }

/** Thrown with what is wrong, and caught where the pattern is compiled. */
export class PatternError extends Error {}

type Cursor = { readonly text: readonly string[]; at: number }

const highestRepeat = 1_000

/** @throws PatternError for what is not in this part of the syntax: look-around, back references, lazy quantifiers, inner anchors */
export function parsePattern(source: string): PatternNode {
  if (!source.startsWith('^') || !source.endsWith('$') || source.endsWith('\\$'))
    throw new PatternError('a pattern begins with ^ and ends with $, so that it covers the whole value')
  const cursor: Cursor = { text: [...source.slice(1, -1)], at: 0 }
  const node = choice(cursor)
  if (cursor.at < cursor.text.length) throw new PatternError('a ")" has no "("')
  return node
}

function choice(cursor: Cursor): PatternNode {
  const items = [sequence(cursor)]
  while (take(cursor, '|')) items.push(sequence(cursor))
  return items.length === 1 && items[0] ? items[0] : { type: 'choice', items }
}

function sequence(cursor: Cursor): PatternNode {
  const items: PatternNode[] = []
  while (cursor.at < cursor.text.length && !'|)'.includes(next(cursor))) items.push(repeated(cursor))
  return { type: 'sequence', items }
}

function repeated(cursor: Cursor): PatternNode {
  const item = atom(cursor)
  const range = quantifier(cursor)
  if (!range) return item
  if ('?+*{'.includes(next(cursor) || ' ')) throw new PatternError('two quantifiers follow each other; lazy quantifiers are not supported')
  return { type: 'repeat', item, ...range }
}

function quantifier(cursor: Cursor): { readonly least: number; readonly most: number } | undefined {
  if (take(cursor, '*')) return { least: 0, most: Number.POSITIVE_INFINITY }
  if (take(cursor, '+')) return { least: 1, most: Number.POSITIVE_INFINITY }
  if (take(cursor, '?')) return { least: 0, most: 1 }
  if (!take(cursor, '{')) return undefined
  const end = cursor.text.indexOf('}', cursor.at)
  const [, low = '', comma, high = ''] = /^(\d{1,4})(,(\d{0,4}))?$/.exec(cursor.text.slice(cursor.at, end).join('')) ?? []
  if (end < 0 || low === '') throw new PatternError('a "{" begins a count such as {1,64}; write \\{ for the character')
  cursor.at = end + 1
  return counted(
    Number(low),
    comma === undefined ? Number(low) : high === '' || high === ',' ? Number.POSITIVE_INFINITY : Number(high.replace(',', '')),
  )
}

function counted(least: number, most: number): { readonly least: number; readonly most: number } {
  const largest = most === Number.POSITIVE_INFINITY ? least : most
  if (most < least || largest > highestRepeat) throw new PatternError(`a count goes up, to at most ${highestRepeat}`)
  return { least, most }
}

function atom(cursor: Cursor): PatternNode {
  const sign = next(cursor)
  cursor.at += 1
  if (sign === '(') return group(cursor)
  if (sign === '[') return { type: 'set', has: characterClass(cursor) }
  if (sign === '.') return { type: 'set', has: () => true }
  if (sign === '\\') return { type: 'set', has: escaped(cursor) }
  if ('*+?{}^$]'.includes(sign)) throw new PatternError(`"${sign}" has no place here; write \\${sign} for the character`)
  return { type: 'set', has: only(sign) }
}

function group(cursor: Cursor): PatternNode {
  if (take(cursor, '?') && !take(cursor, ':')) throw new PatternError('look-around and named groups are not supported; (…) and (?:…) are')
  const node = choice(cursor)
  if (!take(cursor, ')')) throw new PatternError('a "(" has no ")"')
  return node
}

function characterClass(cursor: Cursor): (code: number) => boolean {
  const negated = take(cursor, '^')
  const parts: ((code: number) => boolean)[] = []
  while (next(cursor) !== ']') {
    if (cursor.at >= cursor.text.length) throw new PatternError('a "[" has no "]"')
    parts.push(classPart(cursor))
  }
  cursor.at += 1
  if (parts.length === 0) throw new PatternError('[] contains no character')
  return (code) => parts.some((has) => has(code)) !== negated
}

function classPart(cursor: Cursor): (code: number) => boolean {
  const from = next(cursor)
  cursor.at += 1
  if (from === '\\') return escaped(cursor)
  if (next(cursor) !== '-' || cursor.text[cursor.at + 1] === ']') return only(from)
  const to = cursor.text[cursor.at + 1] ?? ''
  if (to === '\\' || to < from) throw new PatternError(`the range ${from}-${to} does not go up`)
  cursor.at += 2
  return between(from, to)
}

function escaped(cursor: Cursor): (code: number) => boolean {
  const sign = next(cursor)
  cursor.at += 1
  if (sign === 'd') return between('0', '9')
  if (sign === 'w') return (code) => /\w/.test(String.fromCodePoint(code))
  if (!/^[^\p{L}\p{N}\p{C}]$/u.test(sign)) throw new PatternError(`"\\${sign}" is not supported; \\d, \\w and escaped signs are`)
  return only(sign)
}

function only(sign: string): (code: number) => boolean {
  const wanted = sign.codePointAt(0)
  return (code) => code === wanted
}

function between(from: string, to: string): (code: number) => boolean {
  const [low, high] = [from.codePointAt(0) ?? 0, to.codePointAt(0) ?? 0]
  return (code) => code >= low && code <= high
}

function next({ text, at }: Cursor): string {
  return text[at] ?? ''
}

function take(cursor: Cursor, sign: string): boolean {
  const found = next(cursor) === sign
  if (found) cursor.at += 1
  return found
}
