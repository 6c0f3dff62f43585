/**
 * Recognises secrets by their format: tokens of well-known services, private keys, passwords in addresses. Each format has a start of
 * bounded length, which decides, and a rest; so a stream has to wait for little text, and no text takes more than linear time.
 */

import type { Span } from './secret-forms.ts'

/** `some`: a class of characters and how many of them. `before`: what must follow and does not belong to the secret. */
type FormatPiece =
  | string
  | { readonly some: string; readonly min: number; readonly max: number }
  | { readonly before: readonly FormatPiece[] }

type Format = {
  readonly name: string
  /** A literal with which the format begins; it is searched for first. */
  readonly prefix: string
  /** The pieces that must follow the prefix. */
  readonly start: readonly FormatPiece[]
  /** The class of the characters that may follow and still belong to the secret. */
  readonly rest?: string
  /** A pattern that may follow the rest and belongs to it, and the characters of an unfinished one. */
  readonly end?: { readonly whole: string; readonly part: string }
  /** The index of the first piece to hide; absent: the prefix is hidden, too. */
  readonly hidden?: number
  /** Also accepts a start without digits or with few different characters, which is usually an example. */
  readonly anyText?: true
  /** The beginning of what documents and local set-ups write in the place of the hidden part; it must lie within the start. */
  readonly sample?: RegExp
}

const exactly = (some: string, count: number): FormatPiece => ({ some, min: count, max: count })
const [alnum, alnumDash, token, dotted] = ['A-Za-z0-9', 'A-Za-z0-9-', 'A-Za-z0-9_-', 'A-Za-z0-9._~+/=-']

function tokens(name: string, characters: string, count: number, prefixes: readonly string[]): readonly Format[] {
  return prefixes.map((prefix) => ({ name, prefix, start: [exactly(characters, count)], rest: characters }))
}

/** A line break is also written as the two characters of JSON. */
const lineBreak: FormatPiece = { some: '\\s\\\\rn', min: 1, max: 8 }

/** A key that is encrypted in the old way has two lines of headers. */
function privateKey(words: string): readonly Format[] {
  const headers: readonly FormatPiece[] = [
    'Proc-Type: 4,ENCRYPTED',
    lineBreak,
    'DEK-Info: ',
    { some: 'A-Za-z0-9,-', min: 8, max: 80 },
    lineBreak,
  ]
  const shared = {
    name: 'private key',
    prefix: `-----BEGIN ${words}-----`,
    rest: 'A-Za-z0-9+/=\\s\\\\',
    end: { whole: '-----END [A-Z ]{0,30}-----', part: '[-A-Z ]{0,44}' },
    anyText: true,
  } as const
  return [exactly('A-Za-z0-9+/', 16), headers].map((inside) => ({ ...shared, start: [lineBreak, inside].flat() }))
}

const formats: readonly Format[] = [
  ...tokens('GitHub token', alnum, 36, ['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_']),
  ...tokens('GitHub token', 'A-Za-z0-9_', 30, ['github_pat_']),
  ...tokens('AWS key', 'A-Z0-9', 16, ['AKIA', 'ASIA']),
  ...tokens('API key', token, 20, ['sk-']),
  ...tokens('Stripe key', alnum, 20, ['sk_live_', 'sk_test_', 'rk_live_']),
  ...tokens('Slack token', token, 20, ['xoxb-', 'xoxp-', 'xoxa-', 'xoxs-', 'xoxr-', 'xapp-']),
  ...tokens('BraidClaw token', 'a-z0-9_', 46, ['bct_']),
  ...tokens('Google key', token, 35, ['AIza']),
  ...tokens('GitLab token', token, 20, ['glpat-', 'gldt-', 'glrt-']),
  ...tokens('npm token', alnum, 36, ['npm_']),
  ...tokens('PyPI token', token, 20, ['pypi-AgE']),
  ...tokens('Hugging Face token', alnum, 30, ['hf_']),
  {
    ...{ name: 'JSON Web Token', prefix: 'eyJ', rest: 'A-Za-z0-9_.-', anyText: true },
    start: [{ some: token, min: 10, max: 500 }, '.eyJ', exactly(token, 21)],
    // The token that the documents of every library show.
    sample: /^[\w-]+\.eyJzdWIiOiIxMjM0NTY3ODkw/,
  },
  ...['Bearer ', 'bearer '].map((prefix) => ({ name: 'token', prefix, start: [exactly(dotted, 20)], rest: dotted, hidden: 0 })),
  {
    // A host without a dot is this machine or a container beside it, whose password is not a secret.
    ...{ name: 'password', prefix: '://', hidden: 2, anyText: true },
    start: [
      { some: '^\\s/:@"\'<>\\\\', min: 0, max: 100 },
      ':',
      { some: '^\\s/@"\'<>$%{}()\\[\\]*\\\\', min: 4, max: 200 },
      { before: ['@', { some: alnumDash, min: 1, max: 63 }, '.', exactly(alnum, 1)] },
    ],
    sample: /^(?:(?:pass|passwd|password|pwd|secret|token|example|x+)@|[^@]*@(?:127\.|0\.0))/i,
  },
  ...['', 'RSA ', 'EC ', 'DSA ', 'OPENSSH ', 'ENCRYPTED '].flatMap((kind) => privateKey(`${kind}PRIVATE KEY`)),
]

/** No secret is longer; a bound keeps a stream from waiting for ever. */
const longestRest = 16_384
type Compiled = Format & {
  readonly label: string
  /** Both are matched at a given place, behind the prefix. The group of `whole` is what is hidden. */
  readonly whole: RegExp
  readonly unfinished: RegExp
}

export type KeyFormats = {
  /** The spans of everything that has a known format, in no order. */
  find(text: string): readonly Span[]
  /**
   * The spans that begin at `from` or later; and where the earliest text begins that could become a secret, or more of one, with further
   * text: the text's length if there is none.
   */
  scan(text: string, from: number): { readonly spans: readonly Span[]; readonly pending: number }
  readonly labels: readonly string[]
}

const prefixes = [...new Set(formats.map(({ prefix }) => prefix))]
const any = new RegExp(prefixes.map((prefix) => RegExp.escape(prefix)).join('|'))
const longest = Math.max(...prefixes.map(({ length }) => length))
const firsts = prefixes.map((prefix) => prefix.charAt(0)).join('')

export function createKeyFormats(): KeyFormats {
  const state: { compiled?: readonly Compiled[] } = {}
  /** Most processes never meet a key. */
  const compiled = () => (state.compiled ??= formats.map(compile))
  const isBegun = (tail: string) => prefixes.some((prefix) => prefix.startsWith(tail))

  function beginning(text: string, from: number): number {
    for (let at = Math.max(from, text.length - longest + 1); at < text.length; at += 1)
      if (isBorder(text, at) && firsts.includes(text.charAt(at)) && isBegun(text.slice(at))) return at
    return text.length
  }

  const spans = (place: SearchStart) => compiled().flatMap((format) => spansIn(place, format))
  return {
    find: (text) => (any.test(text) ? spans({ text, from: 0 }) : []),
    scan(text, from) {
      const begun = beginning(text, from)
      if (!any.test(text)) return { spans: [], pending: begun }
      const pending = compiled().reduce((least, format) => Math.min(least, pendingIn({ text, from }, format)), begun)
      return { spans: spans({ text, from }), pending }
    },
    labels: [...new Set(formats.map(({ name }) => labelOf(name)))],
  }
}

function labelOf(name: string): string {
  return `[redacted:${name}]`
}

function compile(format: Format): Compiled {
  const { start, rest, end, hidden = 0, name } = format
  const pieces = start.map(source)
  const more = rest === undefined ? '' : `[${rest}]{0,${longestRest}}${end ? `(?:${end.whole})?` : ''}`
  return {
    ...format,
    label: labelOf(name),
    whole: new RegExp(`${pieces.slice(0, hidden).join('')}(${pieces.slice(hidden).join('')}${more})`, 'y'),
    unfinished: new RegExp(unfinished(start), 'y'),
  }
}

function source(piece: FormatPiece): string {
  if (typeof piece === 'string') return RegExp.escape(piece)
  return 'before' in piece ? `(?=${piece.before.map(source).join('')})` : `[${piece.some}]{${piece.min},${piece.max}}`
}

/** Matches what ends with the text before it is decided. */
function unfinished([first, ...others]: readonly FormatPiece[]): string {
  if (first === undefined) return '(?!)'
  if (typeof first === 'object' && 'before' in first) return unfinished([...first.before, ...others])
  const next = `(?:${unfinished(others)})`
  if (typeof first === 'object') return `(?:[${first.some}]{0,${first.max}}$|${source(first)}${next})`
  return [...first].reduceRight((then, character) => `(?:$|${RegExp.escape(character)}${then})`, next)
}

/** A prefix within a word, as in "task-", begins nothing. */
function isBorder(text: string, at: number): boolean {
  return at === 0 || !isWord(text.charCodeAt(at - 1)) || !isWord(text.charCodeAt(at))
}

function isWord(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 48 && code <= 57) || code === 95 || code === 45
}

type SearchStart = { readonly text: string; readonly from: number }

/** Every secret of this format, from `begin` to `end`. */
function* places({ text, from }: SearchStart, format: Compiled): Generator<{ readonly begin: number; readonly end: number }> {
  const { prefix, whole, hidden, anyText, sample, start } = format
  for (let at = text.indexOf(prefix, from); at >= 0; at = text.indexOf(prefix, at)) {
    whole.lastIndex = at + prefix.length
    const found = isBorder(text, at) ? whole.exec(text) : null
    const isSecret =
      found !== null &&
      !sample?.test(text.slice(whole.lastIndex - (found[1]?.length ?? 0), whole.lastIndex + 8)) &&
      (anyText || isVaried(text, at + prefix.length, start))
    const end = isSecret ? whole.lastIndex : at
    if (isSecret) yield { begin: hidden === undefined ? at : end - (found[1]?.length ?? 0), end }
    at = Math.max(end, at + 1)
  }
}

function spansIn(place: SearchStart, format: Compiled): readonly Span[] {
  return [...places(place, format)].map(({ begin, end }) => ({ start: begin, end, label: format.label }))
}

/** Examples in documents repeat one character or spell words. Only the start counts, so that a stream decides as the whole text does. */
function isVaried(text: string, at: number, [first]: readonly FormatPiece[]): boolean {
  const body = text.slice(at, at + (typeof first === 'object' && 'min' in first ? first.min : 0))
  if (!/\d/.test(body) || body.includes('EXAMPLE')) return false
  let seen = ''
  for (const character of body) if (seen.length < 8 && !seen.includes(character)) seen += character
  return seen.length >= 8
}

function pendingIn({ text, from }: SearchStart, { prefix, unfinished: open, whole, rest, end }: Compiled): number {
  for (let at = text.indexOf(prefix, from); at >= 0; at = text.indexOf(prefix, at)) {
    const behind = at + prefix.length
    if (!isBorder(text, at)) {
      at += 1
      continue
    }
    open.lastIndex = whole.lastIndex = behind
    if (open.test(text)) return at
    if (!whole.test(text)) at = behind
    else if (rest !== undefined && isOpen(text.slice(whole.lastIndex, whole.lastIndex + 50), end?.part)) return at
    else at = Math.max(whole.lastIndex, at + 1)
  }
  return text.length
}

/** Tells whether nothing, or the beginning of the end, is behind the rest. */
function isOpen(behind: string, part: string | undefined): boolean {
  return behind === '' || (part !== undefined && behind.length < 50 && new RegExp(`^${part}$`).test(behind))
}
