/**
 * Removes secrets from all text that leaves the program: each registered value in every spelling that programs give it, and everything that
 * has the format of a well-known kind of key.
 */

import { changeTexts, isObject } from '../../kit/json.ts'
import { createKeyFormats, type KeyFormats } from './key-formats.ts'
import {
  formsOf,
  merge,
  partsOf,
  percentForms,
  replaceSpans,
  type Span,
  type Spelling,
  shortestSecret,
  spansOf,
  spell,
} from './secret-forms.ts'

export type Redactor = {
  /** @returns false when the value is too short to be redacted. Registering a value twice is allowed. */
  register(value: string, name?: string): boolean
  text(text: string): string
  /**
   * @returns the same shape with every string and key redacted. Errors become their redacted name, message and stack; cycles are visibly
   * cut.
   */
  value<T>(json: T): T
  /** Works as `value`, for plain JSON: returns the same object, not a copy, when it contains no secret. */
  json<T>(json: T): T
  /**
   * @returns the names of the registered values that `json` contains, in any spelling, the kinds of keys, and the names of the labels it
   * contains. Never throws, as `value`.
   */
  inspect(json: unknown): Inspection
  /** The number of registered values. */
  count(): number
  /** The values with their labels. Pass them only to another redactor; never show or store them. */
  entries(): Iterable<readonly [value: string, label: string]>
  /** Every spelling that this text could contain or end with the beginning of, longest first. For the stream redactor. */
  spellings(text: string): readonly Spelling[]
  readonly formats: KeyFormats
}

/** `held` are phrases: "the value of NAME", "a GitHub token". `standIns` are names in labels. */
type Inspection = { readonly held: readonly string[]; readonly standIns: readonly string[] }

export function createRedactor(): Redactor {
  const secrets = new Map<string, string>()
  const formats = createKeyFormats()
  /**
   * Computed for the first text that is long enough to contain a secret; the percent-encoded spellings, for the first text with a percent
   * sign.
   */
  const state: { usual?: readonly Spelling[]; all?: readonly Spelling[]; shortest: number } = { shortest: Number.POSITIVE_INFINITY }
  function spellings(text: string): readonly Spelling[] {
    if (!text.includes('%')) {
      state.usual ??= spell(secrets, formsOf)
      return state.usual
    }
    state.all ??= spell(secrets, (part) => [...formsOf(part), ...percentForms(part)])
    return state.all
  }
  function spans(text: string): readonly Span[] {
    const keys = formats.find(text)
    if (text.length < state.shortest) return keys.length === 0 ? keys : spansOf(text, [], keys)
    return spansOf(text, spellings(text), keys)
  }
  const redact = (text: string) => replaceSpans(text, spans(text))
  function register(value: string, name = ''): boolean {
    const secret = value.trim()
    if (secret.length < shortestSecret) return false
    if (secrets.has(secret)) return true
    secrets.set(secret, name === '' ? unnamed : `[redacted:${name}]`)
    Object.assign(state, { usual: undefined, all: undefined })
    // No spelling is shorter than the secret.
    for (const part of partsOf(secret)) state.shortest = Math.min(state.shortest, part.length)
    return true
  }
  function value<T>(json: T): T
  function value(json: unknown): unknown {
    return walk(json, { redact, above: [] })
  }
  function json<T>(given: T): T {
    try {
      return changeTexts(given, redact)
    } catch {
      // The value has cycles or endless nesting.
      return value(given)
    }
  }
  function inspect(json: unknown): Inspection {
    const [held, standIns] = [new Set<string>(), new Set<string>()]
    const labels = [...secrets.values(), ...formats.labels].filter((label) => label !== unnamed)
    const look = (text: string) => {
      for (const { label } of spans(text)) held.add(phraseOf(label, formats.labels))
      if (text.includes('[redacted:')) for (const label of labels) if (text.includes(label)) standIns.add(nameOfLabel(label))
      return text
    }
    walk(json, { redact: look, above: [] })
    return { held: [...held], standIns: [...standIns] }
  }
  return { register, text: redact, value, json, inspect, count: () => secrets.size, entries: () => secrets, spellings, formats }
}

const unnamed = '[redacted]'

/** @returns the name in a label; empty for a value without a name */
export function nameOfLabel(label: string): string {
  return label === unnamed ? '' : label.slice('[redacted:'.length, -1)
}

function phraseOf(label: string, formats: readonly string[]): string {
  const name = nameOfLabel(label)
  if (name === '') return 'the value of a secret'
  if (!formats.includes(label)) return `the value of ${name}`
  return `${/^[AEIOU]|^HF/.test(name) ? 'an' : 'a'} ${name}`
}

function walk(value: unknown, { redact, above }: { redact: (text: string) => string; above: readonly unknown[] }): unknown {
  if (typeof value === 'string') return redact(value)
  if (typeof value !== 'object' || value === null) return value
  if (above.includes(value)) return '[circular]'
  if (above.length > 200) return '[too deep]'
  const inner = (item: unknown) => walk(item, { redact, above: [...above, value] })
  if (Array.isArray(value)) return value.map(inner)
  if (value instanceof Error) return inner({ name: value.name, message: value.message, stack: value.stack, cause: value.cause })
  if ('toJSON' in value && typeof value.toJSON === 'function') return inner(value.toJSON())
  return isObject(value) ? Object.fromEntries(Object.entries(value).map(([key, item]) => [redact(key), inner(item)])) : value
}

type StreamRedactor = {
  /** @returns text that is safe to show; may be empty while the end of a chunk could still begin a secret */
  push(chunk: string): string
  /** @returns the remaining text at the end of the stream */
  flush(): string
}

/**
 * Redacts text that arrives in chunks: a secret split across chunks is never released, and ordinary text is not delayed. All pushes and the
 * flush joined equal `redactor.text` of the whole text. A secret registered later counts from the next push.
 */
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
