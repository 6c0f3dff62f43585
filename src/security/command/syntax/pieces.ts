/** Splits a shell word into pieces that are literal, a pattern or known only at run time. */

import type {
  ArithmeticExpansionPart,
  CommandExpansionPart,
  DoubleQuotedChild,
  HereDoc,
  ParameterExpansionPart,
  ProcessSubstitutionPart,
  SimpleExpansionPart,
  Word,
  WordPart,
} from 'unbash'

export type Expansion =
  | SimpleExpansionPart
  | ParameterExpansionPart
  | CommandExpansionPart
  | ArithmeticExpansionPart
  | ProcessSubstitutionPart

/** `print` is the spelling of a literal that quoting would change. `opaque` is printed unchanged and never trusted. */
export type WordPiece =
  | { readonly type: 'literal'; readonly text: string; readonly print?: string }
  | { readonly type: 'glob'; readonly text: string }
  | { readonly type: 'dynamic'; readonly part: Expansion; readonly quoted: boolean }
  | { readonly type: 'opaque'; readonly text: string }

export type Form = readonly WordPiece[]

/** @returns one form, or one for each word of a brace expansion; a leading `~` is already replaced by the home folder */
export function formsOf(word: Word, home: string): readonly Form[] {
  if (!word.parts) return [plainWord(word, home)]
  const alternatives = word.parts.map((part, index) => ofPart(part, index === 0 ? { home, alone: word.parts?.length === 1 } : undefined))
  if (alternatives.every((forms) => forms.length === 1)) return [merged(alternatives.flat(2))]
  const forms = alternatives.length > 64 ? [] : alternatives.reduce<readonly Form[]>(product, [[]])
  return forms.length > 0 ? forms.filter((form) => form.length > 0).map(merged) : [[{ type: 'opaque', text: word.text }]]
}

function product(made: readonly Form[], next: readonly Form[]): readonly Form[] {
  return made.length * next.length > 256 ? [] : made.flatMap((form) => next.map((pieces) => [...form, ...pieces]))
}

/** Merges adjacent literals. */
function merged(form: Form): Form {
  const done: WordPiece[] = []
  for (const piece of form) {
    const last = done.at(-1)
    const joins = last?.type === 'literal' && piece.type === 'literal' && last.print === undefined && piece.print === undefined
    if (joins) done.splice(-1, 1, literal(last.text + piece.text))
    else done.push(piece)
  }
  return done
}

function plainWord(word: Word, home: string): Form {
  if (word.text.startsWith('~')) return tilde(word.text, word.value, { home, alone: true })
  const assigned = /^([A-Za-z_]\w*=)~(?=\/|$)/.exec(word.text)
  if (assigned) return [literal(`${assigned[1]}${home}${word.value.slice(assigned[0].length)}`)]
  return [literal(word.value)]
}

type Start = { readonly home: string; readonly alone: boolean }

function tilde(text: string, value: string, { home, alone }: Start): Form {
  if (text.startsWith('~/') || (text === '~' && alone)) return [literal(home + value.slice(1))]
  return [{ type: 'opaque', text }]
}

function ofPart(part: WordPart, start: Start | undefined): readonly Form[] {
  switch (part.type) {
    case 'Literal':
      return [start && part.text.startsWith('~') ? tilde(part.text, part.value, start) : [literal(part.value)]]
    case 'SingleQuoted':
      return [[literal(part.value)]]
    case 'AnsiCQuoted':
      return [[ansi(part.value, part.text)]]
    case 'DoubleQuoted':
    case 'LocaleString':
      return [inQuotes(part.parts)]
    case 'Glob':
      return [[/^(\*+|\?|\[[\]\w!^.:,@%+-]*\])$/.test(part.text) ? { type: 'glob', text: part.text } : { type: 'opaque', text: part.text }]]
    case 'BraceExpansion':
      return expandBrace(part.text)?.map(bare) ?? [[{ type: 'opaque', text: part.text }]]
    case 'ExtendedGlob':
      return [[{ type: 'opaque', text: part.text }]]
    default:
      return [[{ type: 'dynamic', part, quoted: false }]]
  }
}

/** Escapes beyond ASCII depend on the locale and on bytes that a string cannot hold. */
function ansi(text: string, source: string): WordPiece {
  return /\\u|\\U|\ufffd/.test(source + text) ? { type: 'literal', text, print: source } : literal(text)
}

function inQuotes(parts: readonly DoubleQuotedChild[]): Form {
  if (parts.length === 0) return [literal('')]
  return parts.map((part) => (part.type === 'Literal' ? literal(part.value) : { type: 'dynamic', part, quoted: true }))
}

/** One item of a brace expansion: `*` and `?` in it are patterns; an empty item is not a word. */
function bare(text: string): Form {
  const parts = text.split(/([*?])/).filter((part) => part !== '')
  return parts.map((part) => (part === '*' || part === '?' ? { type: 'glob', text: part } : literal(part)))
}

function literal(text: string): WordPiece {
  return { type: 'literal', text }
}

/** @returns the body of a here-document as a double-quoted word would hold it */
export function bodyOf(doc: HereDoc): Form {
  const { body, operator, delimiter, closing } = doc
  const stripped = operator === '<<-'
  if (!delimiter || !closing) return [{ type: 'opaque', text: '' }]
  if (delimiter.quoted) return [literal(stripped ? withoutTabs(body.text) : body.text)]
  // The shell strips tabs from each line of the file, so a line joined by a backslash cannot be printed again.
  const joins: Form = stripped && body.text.includes('\\\n') ? [{ type: 'opaque', text: '' }] : []
  if (!body.parts && joins.length > 0) return joins
  if (!body.parts) return [literal(unescaped(stripped ? withoutTabs(body.text) : body.text))]
  return [...joins, ...body.parts.map((part, index) => bodyPart(part, { stripped, first: index === 0 }))]
}

function bodyPart(part: WordPart, { stripped, first }: { stripped: boolean; first: boolean }): WordPiece {
  if (part.type === 'Literal') return literal(stripped ? withoutTabs(part.value, first) : part.value)
  if (/^(Simple|Parameter|Command|Arithmetic)/.test(part.type) && isExpansion(part)) return { type: 'dynamic', part, quoted: true }
  return { type: 'opaque', text: '' }
}

function isExpansion(part: WordPart): part is Expansion {
  return /^(SimpleExpansion|ParameterExpansion|CommandExpansion|ArithmeticExpansion|ProcessSubstitution)$/.test(part.type)
}

function withoutTabs(text: string, atStart = true): string {
  const lines = text.split('\n')
  return lines.map((line, index) => (index > 0 || atStart ? line.replace(/^\t+/, '') : line)).join('\n')
}

function unescaped(text: string): string {
  return text.replace(/\\([\\$`\n])/g, (_, char: string) => (char === '\n' ? '' : char))
}

/** @returns the text of a word that is entirely literal and a single word */
export function literalOf(word: Word, home: string): string | undefined {
  const [form, ...more] = formsOf(word, home)
  if (!form || more.length > 0) return
  const texts = form.map((piece) => (piece.type === 'literal' ? piece.text : undefined))
  return texts.includes(undefined) ? undefined : texts.join('')
}

const limit = 256

/**
 * Expands braces as bash does, in text without quotes and expansions: `{a,b}` → `a`, `b`; `{1..3}` → `1`, `2`, `3`. Undefined when the text
 * is not plain enough or makes too many words.
 */
export function expandBrace(text: string): readonly string[] | undefined {
  if (!/^\{[\w.,/@%+:*?{}=-]*\}$/.test(text)) return
  const items = splitItems(text.slice(1, -1))
  const words = items.length > 1 ? all(items.map(expandText)) : sequence(items[0] ?? '')
  return words && words.length <= limit ? words : undefined
}

/** Concatenates the lists; undefined if one of them is undefined. */
function all(lists: readonly (readonly string[] | undefined)[]): readonly string[] | undefined {
  const known = lists.filter((list) => list !== undefined)
  return known.length === lists.length ? known.flat() : undefined
}

/** Expands text with any number of braces. */
function expandText(text: string): readonly string[] | undefined {
  const open = text.indexOf('{')
  if (open < 0) return [text]
  const close = closing(text, open)
  const middle = close < 0 ? undefined : expandBrace(text.slice(open, close + 1))
  const tails = close < 0 ? undefined : expandText(text.slice(close + 1))
  if (!middle || !tails || middle.length * tails.length > limit) return
  return middle.flatMap((word) => tails.map((tail) => text.slice(0, open) + word + tail))
}

function closing(text: string, open: number): number {
  let depth = 0
  for (let at = open; at < text.length; at++) {
    if (text[at] === '{') depth++
    if (text[at] === '}' && --depth === 0) return at
  }
  return -1
}

function splitItems(text: string): readonly string[] {
  const items: string[] = []
  let depth = 0
  let start = 0
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '{') depth++
    if (text[at] === '}') depth--
    if (text[at] === ',' && depth === 0) {
      items.push(text.slice(start, at))
      start = at + 1
    }
  }
  return [...items, text.slice(start)]
}

function sequence(text: string): readonly string[] | undefined {
  const [, from = '', to = '', by] = /^(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(-?\d{1,9}))?$/.exec(text) ?? []
  if (from !== '') return numbers(from, to, Number(by ?? 1))
  const [, first, last] = /^([a-z])\.\.([a-z])$|^([A-Z])\.\.([A-Z])$/.exec(text)?.filter((part) => part !== undefined) ?? []
  if (first === undefined || last === undefined) return
  return range(first.charCodeAt(0), last.charCodeAt(0), 1)?.map((code) => String.fromCharCode(code))
}

function numbers(from: string, to: string, by: number): readonly string[] | undefined {
  const padded = [from, to].some((text) => /^-?0\d/.test(text))
  const width = padded ? Math.max(from.length, to.length) : 0
  const spell = (value: number) => (value < 0 ? `-${String(-value).padStart(width - 1, '0')}` : String(value).padStart(width, '0'))
  return range(Number(from), Number(to), Math.abs(by) || 1)?.map(spell)
}

function range(from: number, to: number, by: number): readonly number[] | undefined {
  const count = Math.floor(Math.abs(to - from) / by) + 1
  if (count > limit) return
  return Array.from({ length: count }, (_, index) => from + (from <= to ? 1 : -1) * by * index)
}
