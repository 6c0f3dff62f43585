/** Redacts text that arrives in chunks: a secret split across chunks is never released, and ordinary text is not delayed. */

import type { KeyFormats } from './key-formats.ts'
import type { Redactor } from './redact.ts'
import type { Spelling } from './secret-forms.ts'
import { merge, replaceSpans, type Span, spansOf } from './spans.ts'

export type StreamRedactor = {
  /** @returns text that is safe to show; may be empty while the end of a chunk could still begin a secret */
  push(chunk: string): string
  /** @returns the remaining text at the end of the stream */
  flush(): string
}

/** All pushes and the flush joined equal `redactor.text` of the whole text. A secret registered later counts from the next push. */
export function createStreamRedactor({ spellings: spellingsIn, formats }: Pick<Redactor, 'spellings' | 'formats'>): StreamRedactor {
  let held = ''
  /** How many leading characters of `held` belong to a secret whose label was already released. */
  let covered = 0
  /** The last character before `held`: a key does not begin within a word. */
  let before = ''
  let table: Table | undefined
  function current(): Table {
    const spellings = spellingsIn(held)
    if (table?.spellings !== spellings) table = tableOf(spellings)
    return table
  }
  function keys(): ReturnType<KeyFormats['scan']> {
    const { length } = before
    const { spans, pending } = formats.scan(before + held, length)
    if (length === 0) return { spans, pending }
    return { spans: spans.map((span) => ({ ...span, start: span.start - length, end: span.end - length })), pending: pending - length }
  }
  function release(at: number, { spellings }: Table, keys: readonly Span[]): string {
    const found = spansOf(held, spellings, keys)
    const spans = covered > 0 ? merge([{ start: 0, end: covered, label: '' }, ...found]) : found
    const shown = held.slice(0, at)
    before = shown.slice(-1) || before
    held = held.slice(at)
    if (spans.length === 0) return shown
    covered = spans.reduce((most, span) => (span.start < at ? Math.max(most, span.end - at) : most), Math.max(0, covered - at))
    return replaceSpans(shown, begunBefore(at, spans))
  }
  return {
    push(chunk) {
      held += chunk
      const now = current()
      const { spans, pending } = keys()
      return release(Math.min(holdFrom(held, now), pending), now, spans)
    },
    flush: () => (held === '' ? '' : release(held.length, current(), keys().spans)),
  }
}

function begunBefore(at: number, spans: readonly Span[]): readonly Span[] {
  return spans.filter((span) => span.start < at).map((span) => ({ ...span, end: Math.min(span.end, at) }))
}

/** Indexed by first character, so that most positions of ordinary text cost one look-up. */
type Table = { readonly spellings: readonly Spelling[]; readonly longest: number; readonly byFirst: ReadonlyMap<string, readonly string[]> }

function tableOf(spellings: readonly Spelling[]): Table {
  const byFirst = new Map<string, string[]>()
  for (const { text } of spellings) {
    const same = byFirst.get(text.charAt(0))
    if (same) same.push(text)
    else byFirst.set(text.charAt(0), [text])
  }
  return { spellings, longest: spellings[0]?.text.length ?? 0, byFirst }
}

/** @returns the start of the longest ending that could still grow into a spelling; the text's length if there is none */
function holdFrom(text: string, { longest, byFirst }: Table): number {
  for (let at = Math.max(0, text.length - longest + 1); at < text.length; at++) {
    const candidates = byFirst.get(text.charAt(at))
    if (candidates?.some((spelling) => couldGrow(text, at, spelling))) return at
  }
  return text.length
}

function couldGrow(text: string, at: number, spelling: string): boolean {
  const length = text.length - at
  if (spelling.length <= length || (length > 1 && spelling.charCodeAt(1) !== text.charCodeAt(at + 1))) return false
  return spelling.startsWith(text.slice(at))
}
