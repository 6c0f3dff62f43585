/** Inserts inputs and outputs of steps into texts. What is inserted is a value: it is never parsed again. */

import { changeTexts, type JsonObject } from '../kit/json.ts'

/** `{{ steps.ID.output }}` or `{{ inputs.NAME }}`. */
export type Reference = { readonly kind: 'steps' | 'inputs'; readonly name: string }

const pattern = /\{\{\s*(?:(steps)\.([A-Za-z0-9_-]+)\.output|(inputs)\.([A-Za-z0-9_]+))\s*\}\}/g

/** Returns what the texts of a value refer to. Other text in double braces stays as it is. */
export function referencesIn(value: string | JsonObject): readonly Reference[] {
  const found: Reference[] = []
  changeTexts<unknown>(value, (text) => {
    for (const match of text.matchAll(pattern)) found.push(referenceOf(match))
    return text
  })
  return found
}

/** Replaces every reference by its value, in one pass. */
export function fill<T extends string | JsonObject>(value: T, read: (reference: Reference) => string): T {
  return changeTexts(value, (text) => text.replace(pattern, (...match: string[]) => read(referenceOf(match))))
}

function referenceOf([, , step, , input]: readonly (string | undefined)[]): Reference {
  return step === undefined ? { kind: 'inputs', name: input ?? '' } : { kind: 'steps', name: step }
}
