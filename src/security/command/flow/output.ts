/** Predicts the output of a command that another command takes as arguments. It knows only plain uses of a few commands. */

import { type Arg, anyFeed, type Feed, HOLE, literalArg, spelled, sure, type WalkState } from './model.ts'

/** `args` excludes the command word. */
export function outputOf(name: string, args: readonly Arg[], place: WalkState): Feed {
  const texts = args.map(spelled).filter((text) => text !== undefined)
  if (name === 'echo' || name === 'printf') return spoken(name, args)
  if (texts.length < args.length) return anyFeed
  if (name === 'which') return uncertain(texts.join(' '))
  if (name === 'pwd') return place.cwds?.length === 1 && place.cwds[0] && !place.scope.moves ? literal(place.cwds[0]) : anyFeed
  if (name === 'cat' && texts.length === 0) return place.feed.kind === 'none' ? anyFeed : place.feed
  const kind = kindOf(name, texts, place.feed)
  // Without -z, sort splits its input into lines, and one file name may contain several lines.
  const led = name === 'find' || (name === 'sort' && place.feed.led === true && texts.some((text) => text.includes('z')))
  return kind === 'unknown' ? anyFeed : { kind, text: '', downloads: false, led }
}

type OutputKind = 'number' | 'name' | 'unknown'

function kindOf(name: string, texts: readonly string[], feed: Feed): OutputKind {
  const has = (pattern: RegExp) => texts.some((text) => pattern.test(text))
  const all = (pattern: RegExp) => texts.every((text) => pattern.test(text))
  switch (name) {
    case 'nproc':
      return texts.length === 0 ? 'number' : 'unknown'
    case 'seq':
      return all(/^-?\d+$/) ? 'number' : 'unknown'
    case 'wc':
      return all(/^-[lwcm]$/) ? 'number' : 'unknown'
    case 'date':
      if (texts.length === 1 && all(/^\+(%[sYmdHMSj])+$/)) return 'number'
      return all(/^(\+[%\w: -]*|-u)$/) ? 'name' : 'unknown'
    case 'basename':
      return has(/\.\.|^-/) ? 'unknown' : 'name'
    case 'ls':
      return all(/^-[1rtSUvX]+$|^[^-]/) ? 'name' : 'unknown'
    case 'find':
      return has(/^-(f?printf|f?ls|exec|ok|fprint)/) ? 'unknown' : 'name'
    case 'git':
      return gitOutput(texts)
    case 'grep':
    case 'egrep':
    case 'fgrep':
    case 'rg':
      return searchOutput(name, texts, feed)
    case 'sort':
      return passed(feed, all(/^-[unrVfz]+$/))
    case 'head':
    case 'tail':
      return passed(feed, all(/^-n$|^-?n?\+?\d+$|^-n\+?\d+$/))
    case 'uniq':
    case 'tac':
      return passed(feed, texts.length === 0)
    default:
      return 'unknown'
  }
}

function literal(text: string): Feed {
  return { kind: 'literal', text, downloads: false }
}

/** Predicts the output of a filter that only passes on lines of its input. */
function passed({ kind }: Feed, plain: boolean): OutputKind {
  return plain && (kind === 'name' || kind === 'number') ? kind : 'unknown'
}

function gitOutput([sub, ...rest]: readonly string[]): OutputKind {
  const all = (pattern: RegExp) => rest.every((text) => pattern.test(text))
  if (sub === 'rev-list') return rest.includes('--count') && all(/^(--count|HEAD|[A-Za-z]\w*)$/) ? 'number' : 'unknown'
  if (sub === 'ls-files') return all(/^(-[zmocdu]|--(cached|modified|others|exclude-standard|deleted)|[^-].*)$/s) ? 'name' : 'unknown'
  if (sub === 'ls-tree') return all(/^(-r|-z|--name-only|HEAD|[A-Za-z][\w/]*)$/) && rest.includes('--name-only') ? 'name' : 'unknown'
  if (sub === 'rev-parse') return all(/^(--short(=\d+)?|--verify|--abbrev-ref|-q|--quiet|HEAD|[A-Za-z]\w*)$/) ? 'name' : 'unknown'
  if (sub === 'branch') return rest.length === 1 && rest[0] === '--show-current' ? 'name' : 'unknown'
  if (sub === 'diff')
    return rest.includes('--name-only') && all(/^(--name-only|--cached|--staged|-z|--diff-filter=\w+|[A-Za-z][\w/.~^-]*)$/)
      ? 'name'
      : 'unknown'
  if (sub === 'describe') return all(/^(--(tags|always|long|all|exact-match|abbrev=\d+)|HEAD)$/) ? 'name' : 'unknown'
  return 'unknown'
}

/** A list of files, a count of input lines, or lines of the input. */
function searchOutput(name: string, texts: readonly string[], feed: Feed): OutputKind {
  const options = texts.filter((text) => /^-./.test(text))
  const operands = texts.length - options.length
  const plain = options.every((text) => /^-[rRlcvEFiwxs]+$|^--(include|exclude|exclude-dir|files|glob|type|hidden)\b/.test(text))
  if (!plain) return 'unknown'
  if (options.some((text) => /^-[a-zA-Z]*l/.test(text) || text === '--files')) return 'name'
  const recursive = name === 'rg' || options.some((text) => /[rR]/.test(text))
  if (operands !== 1 || (recursive && name !== 'rg') || feed.kind === 'none') return 'unknown'
  return options.some((text) => /^-[a-zA-Z]*c/.test(text))
    ? 'number'
    : passed(
        feed,
        options.every((text) => /^-[vEFiwx]+$/.test(text)),
      )
}

/** The printed text. It is uncertain when it has holes, or escapes that other shells read differently. */
function spoken(name: string, args: readonly Arg[]): Feed {
  const known = args.every((arg) => sure(arg) !== undefined)
  const texts = args.map((arg) => (arg.texts.length === 1 ? (arg.texts[0] ?? '') : HOLE))
  if (name === 'echo')
    return known && !texts.some((text) => /\\|^-/.test(text)) ? literal(`${texts.join(' ')}\n`) : uncertain(echoed(texts))
  const [format = '', ...rest] = texts
  const text = withEscapes(format)
  const once = /^%s(\n?| ?)$/.exec(text)
  if (known && once) return literal(rest.map((part) => `${part}${once[1]}`).join(''))
  return known && !/[%\\]|^-/.test(text) ? literal(text) : uncertain(printed(text, rest))
}

function uncertain(text: string): Feed {
  return { ...anyFeed, text }
}

function echoed(texts: readonly string[]): string {
  const from = texts.findIndex((text) => !/^-[neE]+$/.test(text))
  return `${withEscapes(texts.slice(from < 0 ? texts.length : from).join(' '))}\n`
}

/** Applies the format once; every conversion other than `%s` and `%b` becomes a hole. */
function printed(format: string, rest: readonly string[]): string {
  let next = 0
  return format.replace(/%(%|[-+ #0-9.*]*\w)/g, (_, kind: string) =>
    kind === '%' ? '%' : kind === 's' || kind === 'b' ? (rest[next++] ?? '') : HOLE,
  )
}

function withEscapes(text: string): string {
  return text.replace(/\\(x[\da-fA-F]{1,2}|[0-7]{1,3}|n|t)/g, (_, code: string) => unescaped(code))
}

function unescaped(code: string): string {
  if (code === 'n' || code === 't') return code === 'n' ? '\n' : '\t'
  return String.fromCharCode(code.startsWith('x') ? Number.parseInt(code.slice(1), 16) : Number.parseInt(code, 8))
}

/** @returns the words that xargs would make of the text */
export function wordsOf(feed: Feed): readonly Arg[] | undefined {
  if (feed.kind !== 'literal' || /['"\\\0]/.test(feed.text)) return
  return feed.text
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => literalArg(word))
}
