/** Lists the spellings that programs give a secret (in JSON, URLs, HTML, hex and base64), and finds and replaces them in a text. */

/** Redacting shorter values would blank out ordinary words; `register` returns false for them. */
export const shortestSecret = 6

export type Spelling = { readonly text: string; readonly label: string }

/** @returns every spelling of each part of each secret, longest first; `forms` gives the spellings of one part */
export function spell(secrets: ReadonlyMap<string, string>, forms: (part: string) => readonly string[]): readonly Spelling[] {
  const all = new Map<string, string>()
  for (const [secret, label] of secrets) {
    for (const part of partsOf(secret))
      for (const text of forms(part)) if (text.length >= shortestSecret && !all.has(text)) all.set(text, label)
  }
  return [...all].map(([text, label]) => ({ text, label })).sort((a, b) => b.text.length - a.text.length)
}

/** The lines of a multi-line secret (a PEM key) also count separately, because `head -2 key` shows single lines. */
export function partsOf(secret: string): readonly string[] {
  if (!secret.includes('\n')) return [secret]
  const lines = secret.split('\n').filter((line) => line.trim().length >= 16 && !line.startsWith('-----'))
  return [secret, ...lines.map((line) => line.trim())]
}

/** A secret of only these characters needs no escaping in JSON, URLs or HTML. */
const ordinary = /^[\w.-]*$/

export function formsOf(secret: string): readonly string[] {
  const bytes = new TextEncoder().encode(secret)
  const hex = bytes.toHex()
  const coded = [...base64Forms(bytes), hex, hex.toUpperCase()]
  return ordinary.test(secret) ? [secret, ...coded] : [...escapedForms(secret), ...coded]
}

function escapedForms(secret: string): readonly string[] {
  const json = JSON.stringify(secret).slice(1, -1)
  const slashed = json.replaceAll('/', '\\/')
  const url = encodeURIComponent(secret.toWellFormed())
  const form = url.replace(/[!'()*~]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`).replaceAll('%20', '+')
  const path = encodeURI(secret.toWellFormed())
  const lower = [url, form, path].map((text) => text.replace(/%[\dA-F]{2}/g, (code) => code.toLowerCase()))
  const forms = [secret, json, slashed, JSON.stringify(json).slice(1, -1), url, form, path, ...lower]
  return [...forms, ...asciiForms(json), ...htmlForms(secret, json)]
}

/** Percent-encodes every byte: no byte requires it, but some programs do it. */
export function percentForms(secret: string): readonly string[] {
  const escaped = new TextEncoder().encode(secret).toHex().replace(/../g, '%$&')
  return [escaped, escaped.toUpperCase()]
}

/** JSON as other programs write it, with letters beyond ASCII escaped. */
function asciiForms(json: string): readonly string[] {
  const written = (spell: (code: string) => string) =>
    json.replace(/[^ -~]/g, (char) => `\\u${spell(char.charCodeAt(0).toString(16).padStart(4, '0'))}`)
  return [written((code) => code), written((code) => code.toUpperCase())]
}

function htmlForms(secret: string, json: string): readonly string[] {
  const text = secret.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  const named = text.replaceAll('"', '&quot;')
  const script = json.replaceAll('&', '\\u0026').replaceAll('<', '\\u003c').replaceAll('>', '\\u003e')
  const quoted = [named.replaceAll("'", '&#39;'), text.replaceAll('"', '&#34;').replaceAll("'", '&#39;'), named.replaceAll("'", '&#x27;')]
  return [text, named, ...quoted, script]
}

/**
 * Inside a longer base64 text a secret starts at one of three offsets; only characters that the secret alone determines can be searched
 * for.
 */
function base64Forms(bytes: Uint8Array): readonly string[] {
  const forms: string[] = []
  for (const offset of [0, 1, 2]) {
    const padded = new Uint8Array(offset + bytes.length)
    padded.set(bytes, offset)
    for (const alphabet of ['base64', 'base64url'] as const)
      forms.push(padded.toBase64({ alphabet }).slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6)))
  }
  return forms
}

/** A range of text to replace; overlapping ranges are merged and keep the label of the first. */
export type Span = { readonly start: number; readonly end: number; readonly label: string }

/** Adds the places of the spellings to `known`. @returns the spans in order, merged where they overlap */
export function spansOf(text: string, spellings: readonly Spelling[], known: readonly Span[] = []): readonly Span[] {
  const found: Span[] = []
  for (const spelling of spellings) {
    for (let start = text.indexOf(spelling.text); start >= 0; start = text.indexOf(spelling.text, start + 1))
      found.push({ start, end: start + spelling.text.length, label: spelling.label })
  }
  return merge([...found, ...known].sort((a, b) => a.start - b.start || b.end - a.end))
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

const [shortest, longestWord] = [12, 15]

/**
 * Decides which values are worth redacting: a dummy key such as `ollama` is an ordinary word, and redacting it would garble ordinary text.
 * @returns why a value is not redacted, as the end of a sentence about it; undefined when it is redacted
 */
export function weaknessOf(value: string): string | undefined {
  const secret = value.trim()
  if (secret.length < shortest) return `is shorter than ${shortest} characters`
  return isWords(secret) ? 'consists of letters and dashes alone' : undefined
}

/** `not-needed`, `sk-no-key-required`. A run of letters longer than any word is a token. */
function isWords(secret: string): boolean {
  return /^[a-z-]+$/i.test(secret) && secret.split('-').every((word) => word.length <= longestWord)
}
