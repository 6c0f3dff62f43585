/** Finds the ranges of a text that hold secrets, and puts labels in their place. */

import type { Spelling } from './secret-forms.ts'

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
