/**
 * Prepares text for a person or a model: makes hidden characters visible, truncates long text visibly, formats counts, suggests similar
 * words.
 */

import { sha256 } from './sha256.ts'

/** Returns one line in which every invisible character reads `\u{1b}`. It is unambiguous: a literal `\u{` becomes `\u{5c}u{`. */
export function visible(text: string): string {
  /*
   * Everything that can change how a line looks without being seen: controls, bidi, zero width, odd spaces, lone surrogates, what has no
   * shape (unassigned, blank Braille, the null note head, fillers), and so many spaces that they fill a row of the terminal.
   */
  const unseen = / {8,}|[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u{1d159}\u{16fe4}\ufffc]|(?! )\p{Zs}/gu
  return text.replaceAll('\\u{', '\\u{5c}u{').replace(unseen, spelled)
}

/**
 * Returns several lines of text for a model. It keeps newlines, tabs and the joiners that emoji and some scripts need. It escapes
 * characters that hide or control other text (control, format and tag characters, text direction) as `visible` does.
 */
export function visibleLines(text: string): string {
  const hidden = /(?![\n\t\u200c\u200d])[\p{C}\p{Zl}\p{Zp}]/gu
  return text.replaceAll('\r\n', '\n').replaceAll('\\u{', '\\u{5c}u{').replace(hidden, spelled)
}

function spelled(found: string): string {
  return `\\u{${found.codePointAt(0)?.toString(16)}}${found.startsWith(' ') ? `*${found.length}` : ''}`
}

/**
 * Truncates the middle and keeps head and tail, so that padding cannot hide a dangerous end. Length and hash are those of the whole text.
 */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text
  const tail = Math.floor(limit / 4)
  const middle = `… [cut: ${text.length} characters, sha256 ${sha256(text.toWellFormed()).slice(0, 16)}] …`
  return `${text.slice(0, limit - tail)} ${middle} ${text.slice(-tail)}`.toWellFormed()
}

/** Puts the text on one line: any amount of white space becomes one space. */
export function flat(text: string): string {
  return text.replace(/\s+/g, ' ')
}

/** Returns the words of a text that may be a web page, on one line. */
export function wordsOfPage(text: string): string {
  return flat(text.replace(/<(script|style|head)\b[\s\S]*?<\/\1\s*>|<!--[\s\S]*?-->|<[^>]*>/gi, ' ')).trim()
}

/** Quotes a value for a message: visible, about 80 characters at most. */
export function quote(value: unknown): string {
  return cut(visible(JSON.stringify(value) ?? String(value)), 80)
}

/** 1234567 → "1,234,567". */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',')
}

/** `1 receipt`, `2 receipts`, `3,000 receipts`. It adds an s to `word` unless `number` is 1. */
export function count(number: number, word: string): string {
  return `${grouped(number)} ${word}${number === 1 ? '' : 's'}`
}

/** Returns `; did you mean "x"?`, or an empty text when no word is near. It cuts nothing, so that it runs on Node too, without sha256. */
export function didYouMean(word: string, known: readonly string[]): string {
  const name = nearest(word, known)
  return name === undefined ? '' : `; did you mean ${visible(JSON.stringify(name))}?`
}

/**
 * File systems that ignore case or invisible characters open `.GIT` and `.g<ZWNJ>it` as `.git`, so locks compare folded text. Folding may
 * refuse a harmless name but never allows a locked one; the workspace boundary compares exact text.
 */
export function folded(path: string): string {
  // Without non-ASCII characters, control characters, or a name that ends in a dot or space, folding only changes case.
  if (!/[^ -~]|[. ](?:\/|$)/.test(path)) return path.toLowerCase()
  return path.split('/').map(foldName).join('/')
}

function foldName(name: string): string {
  const plain = name.normalize('NFKC').toLowerCase()
  const bare = plain.replace(/\p{Default_Ignorable_Code_Point}/gu, '').replaceAll('/', '')
  return /[^. ]/.test(bare) ? bare.replace(/[. ]+$/, '') : bare
}

/** Returns the known word that a person most likely meant, or undefined when none is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const target = plainWord(word)
  const begun = target.length < 4 ? [] : known.filter((name) => plainWord(name).startsWith(target))
  if (begun.length === 1) return begun[0]
  const allowed = Math.max(1, Math.floor(target.length / 3))
  const ranked = known.map((name) => ({ name, off: distance(target, plainWord(name)) })).sort((a, b) => a.off - b.off)
  const best = ranked[0]
  return best !== undefined && best.off <= allowed ? best.name : undefined
}

/** Removes differences of case, dashes and camelCase. It truncates long words, because no known word is that long. */
function plainWord(word: string): string {
  return word
    .slice(0, 80)
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase()
}

/** Damerau–Levenshtein (adjacent swaps count one). */
function distance(a: string, b: string): number {
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? (before[j - 2] ?? 0) + 1 : change
      row.push(Math.min(change, swap, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1))
    }
    before = last
    last = row
  }
  return last[b.length] ?? 0
}
