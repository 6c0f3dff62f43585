/** Reads and appends history.jsonl: questions and answers in pairs, one message per line. */

import { atEnd, unlessMissing } from '../../kit/errors.ts'
import { isObject, parseJson } from '../../kit/json.ts'
import { type ByteRange, endsTorn, linesOf, tailOf, withFile } from './bounded-read.ts'
import type { Disk } from './disk.ts'

export type Pair = { readonly user: string; readonly assistant: string }

/** Returns how many pairs make up this many messages; at least one. */
export function pairsIn(messages: number): number {
  return Math.max(1, Math.floor(messages / 2))
}

type HistoryMessage = { readonly role: 'user' | 'assistant'; readonly content: string }

/**
 * `starts`: the byte offset of each pair. Skipped: `unreadable` lines (not a message, or longer than 1 MiB) and `unpaired` messages
 * (without an answer or a question). `torn`: the last line has no newline.
 */
export type PairHistory = {
  readonly starts: readonly number[]
  readonly recent: readonly Pair[]
  readonly unreadable: number
  readonly unpaired: number
  readonly torn: boolean
  /** The position reached, so that a later read covers only what was added. */
  readonly place: ReadPosition
}

/** `size` bytes were read; `tail` is the digest of the last of them; `question` is one that has no answer yet. */
type ReadPosition = {
  readonly size: number
  readonly tail: string
  readonly question?: { readonly from: number; readonly content: string }
}

/**
 * `keep`: how many pairs to return as text. Treats a missing file as empty. `before`: an earlier result; if lines were only added since,
 * only those are read. @throws errno errors
 */
export function readHistory(path: string, keep: number, before?: PairHistory): PairHistory {
  const read = unlessMissing(() =>
    withFile(path, (file, size) => {
      const hasGrown = before && !before.torn && before.place.size <= size && tailOf(file, before.place.size) === before.place.tail
      return scan(file, { from: hasGrown ? before.place.size : 0, to: size }, { keep, before: hasGrown ? before : undefined })
    }),
  )
  return read ?? scan(-1, { from: 0, to: 0 }, { keep })
}

function scan(file: number, range: ByteRange, { keep, before }: { readonly keep: number; readonly before?: PairHistory }): PairHistory {
  const [starts, recent]: [number[], Pair[]] = [[...(before?.starts ?? [])], [...(before?.recent ?? [])]]
  let [unreadable, torn] = [before?.unreadable ?? 0, false]
  let { question } = before?.place ?? {}
  let unpaired = (before?.unpaired ?? 0) - (question ? 1 : 0)
  for (const line of linesOf(file, range)) {
    torn = line.torn
    if (line.text?.trim() === '') continue
    const message = messageIn(line.text)
    if (!message) unreadable += 1
    else if (message.role === 'user') {
      if (question) unpaired += 1
      question = { from: line.from, content: message.content }
    } else if (!question) unpaired += 1
    else {
      starts.push(question.from)
      recent.push({ user: question.content, assistant: message.content })
      if (recent.length > keep) recent.shift()
      question = undefined
    }
  }
  const place = { size: range.to, tail: tailOf(file, range.to), question }
  return { starts, recent, unreadable, unpaired: unpaired + (question ? 1 : 0), torn, place }
}

/** Ignores unknown members. */
function messageIn(text: string | undefined): HistoryMessage | undefined {
  const value = parseJson(text ?? '')
  if (!isObject(value) || typeof value.content !== 'string') return undefined
  return value.role === 'user' || value.role === 'assistant' ? { role: value.role, content: value.content } : undefined
}

/**
 * Returns the messages in a part of the file as its lines; shortens a line longer than `longest` characters in the middle, and marks that.
 */
export function conversationIn(path: string, range: ByteRange, longest: number): { readonly text: string; readonly messages: number } {
  return withFile(path, (file) => {
    const lines: string[] = []
    for (const { text } of linesOf(file, range)) {
      const message = messageIn(text)
      if (text !== undefined && message) lines.push(text.length <= longest ? text.trim() : shortened(message, longest))
    }
    return { text: lines.join('\n'), messages: lines.length }
  })
}

function shortened({ role, content }: HistoryMessage, longest: number): string {
  return messageLine({ role, content: withoutMiddle(content, longest) })
}

export function withoutMiddle(text: string, longest: number): string {
  if (text.length <= longest) return text
  const half = Math.floor(longest / 2)
  return `${text.slice(0, half)} [${text.length - 2 * half} characters left out] ${text.slice(-half)}`.toWellFormed()
}

export function messageLine(message: { readonly role: string; readonly content: string }): string {
  return JSON.stringify({ role: message.role, content: message.content.toWellFormed() })
}

/**
 * Writes both messages in one write, or nothing. After a line that a crash cut short it starts a new line; the partial line stays and
 * counts as unreadable. Call it under the folder's lock. Does not sync, because the journal survives a power failure. @throws errno errors
 */
export function appendPair(disk: Disk, path: string, { user, assistant }: Pair): void {
  const file = disk.open(path, 'append')
  using _end = atEnd(() => disk.close(file))
  const { size, torn } = withFile(path, (read, size) => ({ size, torn: endsTorn(read, size) }))
  const lines = `${messageLine({ role: 'user', content: user })}\n${messageLine({ role: 'assistant', content: assistant })}\n`
  const bytes = Buffer.from(torn ? `\n${lines}` : lines)
  const count = disk.write(file, bytes)
  if (count === bytes.length) return
  disk.truncate(file, size)
  throw Object.assign(new Error(`ENOSPC: no space left on device, write '${path}'`), { code: 'ENOSPC' })
}
