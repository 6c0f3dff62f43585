/** Defines the journal note for a line that another program wrote into an agent's file: file, line number, digest and text. */

import { isObject, parseJson } from '../../kit/json.ts'
import { sha256 } from '../../kit/sha256.ts'
import type { AgentFile } from './agent-paths.ts'

/** The type of this note. */
export const foreignLine = 'file.line'

/** `line` counts from 1 in the file at that time. */
export type ForeignLine = { readonly file: AgentFile; readonly line: number; readonly sha256: string; readonly text: string }

export function foreignBody(file: AgentFile, line: number, text: string): ForeignLine & { readonly type: typeof foreignLine } {
  return { type: foreignLine, file, line, sha256: sha256(text), text }
}

/** Returns undefined for any other entry. */
export function foreignLineIn({
  kind,
  type,
  body,
}: {
  readonly kind: string
  readonly type: string
  readonly body: unknown
}): ForeignLine | undefined {
  if (kind !== 'note' || type !== foreignLine || !isObject(body)) return undefined
  const { file, line, sha256: digest, text } = body
  if (file !== 'trace' && file !== 'session' && file !== 'history') return undefined
  return typeof line === 'number' && typeof digest === 'string' && typeof text === 'string'
    ? { file, line, sha256: digest, text }
    : undefined
}

/** Returns the line as a message of a conversation; undefined for a line of the trace, and for the rest of a truncated message. */
export function saidIn({ file, text }: ForeignLine): { readonly role: 'user' | 'assistant'; readonly content: string } | undefined {
  if (file === 'trace') return undefined
  const value = parseJson(text)
  if (isObject(value) && typeof value.content === 'string')
    return { role: value.role === 'assistant' ? 'assistant' : 'user', content: value.content }
  return /^[{}[\]]/.test(text.trim()) ? undefined : { role: 'user', content: text }
}
