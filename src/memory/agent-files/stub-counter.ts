/** Numbers the stub's answers 1, 2, 3 … for an agent, without repeats even under concurrent calls. */

import { readFileSync } from 'node:fs'
import { appendText } from './append-line.ts'

/** Each caller appends its own line in one write; the position of that line is its number. @throws errno errors */
export function nextNumber(path: string): number {
  const mine = crypto.randomUUID()
  appendText(path, `${mine}\n`)
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
  return lines.indexOf(mine) + 1
}
