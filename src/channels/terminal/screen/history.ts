/** Keeps the messages that were typed, in a file of mode 0600: an entry a line, newest last. */

import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { attempt } from '../../../kit/errors.ts'

export const historySize = 1000
/** Separates the lines of an entry. */
const lineBreak = '\u2028'

/** Returns the entries, newest last. */
export function readHistory(path: string): string[] {
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').split('\n').filter(Boolean).slice(-historySize)
  return lines.map((line) => line.replaceAll(lineBreak, '\n'))
}

/** History is a convenience: a disk error must not end the conversation. */
export function keep(path: string, entry: string): void {
  attempt(() => {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    appendFileSync(path, `${entry.replaceAll('\n', lineBreak)}\n`, { mode: 0o600 })
  })
}
