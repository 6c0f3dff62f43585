/** Removes secrets by value from all text that leaves the program: each registered value in every spelling that programs give it. */

import { changeTexts, isObject } from '../../kit/json.ts'
import { formsOf, partsOf, percentForms, type Spelling, shortestSecret, spell } from './secret-forms.ts'

export type Redactor = {
  /** @returns false when the value is too short to be redacted. Registering a value twice is allowed. */
  register(value: string, name?: string): boolean
  text(text: string): string
  /**
   * @returns the same shape with every string and key redacted. Errors become their redacted name, message and stack; cycles are visibly
   * cut.
   */
  value<T>(json: T): T
  /** As `value`, for plain JSON: returns the same object, not a copy, when it contains no secret. */
  json<T>(json: T): T
  /**
   * @returns the names of the registered values that `json` contains, in any spelling, and of the labels it contains. Never throws, as
   * `value`.
   */
  inspect(json: unknown): Inspection
  /** The number of registered values. */
  count(): number
  /** The values with their labels. Pass them only to another redactor; never show or store them. */
  entries(): Iterable<readonly [value: string, label: string]>
  /** Every spelling that this text could contain or end with the beginning of, longest first. For the stream redactor. */
  spellings(text: string): readonly Spelling[]
}

export type Inspection = { readonly held: readonly string[]; readonly standIns: readonly string[] }

/** A range of text to replace; overlapping ranges are merged and keep the label of the first. */
export type Span = { readonly start: number; readonly end: number; readonly label: string }

export function createRedactor(): Redactor {
  const secrets = new Map<string, string>()
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
  const redact = (text: string) => (text.length < state.shortest ? text : replaceSpans(text, spansOf(text, spellings(text))))
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
    if (secrets.size === 0) return given
    try {
      return changeTexts(given, redact)
    } catch {
      // The value has cycles or endless nesting.
      return value(given)
    }
  }
  function inspect(json: unknown): Inspection {
    const [held, standIns] = [new Set<string>(), new Set<string>()]
    if (secrets.size === 0) return { held: [], standIns: [] }
    const look = (text: string) => {
      for (const { label } of text.length < state.shortest ? [] : spansOf(text, spellings(text))) held.add(nameIn(label))
      for (const label of secrets.values()) if (label !== unnamed && text.includes(label)) standIns.add(nameIn(label))
      return text
    }
    walk(json, { redact: look, above: [] })
    return { held: [...held], standIns: [...standIns] }
  }
  return { register, text: redact, value, json, inspect, count: () => secrets.size, entries: () => secrets, spellings }
}

const unnamed = '[redacted]'

/** @returns the name in a label; empty for a value without a name */
export function nameOfLabel(label: string): string {
  return label === unnamed ? '' : label.slice('[redacted:'.length, -1)
}

function nameIn(label: string): string {
  return nameOfLabel(label) || 'a secret'
}

/** @returns the spans in order, merged where they overlap */
export function spansOf(text: string, spellings: readonly Spelling[]): readonly Span[] {
  const found: Span[] = []
  for (const spelling of spellings) {
    for (let start = text.indexOf(spelling.text); start >= 0; start = text.indexOf(spelling.text, start + 1))
      found.push({ start, end: start + spelling.text.length, label: spelling.label })
  }
  return merge(found.sort((a, b) => a.start - b.start || b.end - a.end))
}

/** Takes spans sorted by start. Adjacent spans that do not overlap stay separate. */
export function merge(sorted: readonly Span[]): readonly Span[] {
  const merged: Span[] = []
  for (const span of sorted) {
    const last = merged.at(-1)
    if (last && span.start < last.end) merged[merged.length - 1] = { ...last, end: Math.max(last.end, span.end) }
    else merged.push(span)
  }
  return merged
}

export function replaceSpans(text: string, spans: readonly Span[]): string {
  if (spans.length === 0) return text
  const pieces = spans.map((span, at) => text.slice(spans[at - 1]?.end ?? 0, span.start) + span.label)
  return pieces.join('') + text.slice(spans[spans.length - 1]?.end ?? 0)
}

type Walk = { readonly redact: (text: string) => string; readonly above: readonly unknown[] }

function walk(value: unknown, { redact, above }: Walk): unknown {
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

/**
 * Whether the name of a configuration key says that it holds a secret: `api_key`, `botToken`; not `api_key_env`, `max_tokens`,
 * `public_key`.
 */
export function looksSecretKey(name: string): boolean {
  const words = name
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
  const last = words.at(-1) ?? ''
  const pair = words.slice(-2).join('_')
  if (['env', 'file', 'path', 'command', 'name', 'ttl', 'url', 'id', 'hash'].includes(last) || words.includes('public')) return false
  if (/^(api|access|private|secret|signing|encryption|auth|account|service|master|hmac|mac|receipt|ssh|shared)_keys?$/.test(pair))
    return true
  return (
    /^(secrets?|token|passwords?|passwd|pwd|passphrase|pass|pin|credentials?|apikeys?|bearer|cookies?|authorization|auth|key)$/.test(
      last,
    ) ||
    words.includes('secret') ||
    words.includes('password')
  )
}
