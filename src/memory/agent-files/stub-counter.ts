/** Numbers for the stub's answers: 1, 2, 3 … for an agent, no number twice, however many ask at once. */

import { readFileSync } from 'node:fs'
import { appendText } from './append-line.ts'

/** Each caller adds a line of its own in one write; its place in the file is its number. @throws errno errors */
export function nextNumber(path: string): number {
  const mine = crypto.randomUUID()
  appendText(path, `${mine}\n`)
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
  return lines.indexOf(mine) + 1
}
