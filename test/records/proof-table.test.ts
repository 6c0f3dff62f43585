/** The table in docs/proof.md, row by row: the alteration is made, every command of the table is run, and ends as the table says. */

import { afterAll, test as always, beforeAll, expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { alterations, copyOf, madeHome } from '../support/alterations.ts'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { alone, turn } from '../support/turns.ts'

const test = always.if(needs('sqlite3'))
const page = readFileSync(join(import.meta.dir, '../../docs/proof.md'), 'utf8')
const cells = (line: string) =>
  line
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim())
const lines = page.split('\n').filter((line) => cells(line).length === 6)
const [head = [], , ...rows] = lines.map(cells)
const commands = head.slice(1).map((cell) => cell.replaceAll('`', '').split(' '))

const state: { home?: Nest } = {}
beforeAll(async () => {
  state.home = await madeHome()
})
afterAll(() => state.home?.[Symbol.dispose]())

async function codesAfter(words: string): Promise<(number | null)[]> {
  if (!state.home) throw new Error('no home was made')
  using at = copyOf(state.home)
  await alterations[words]?.(at)
  const codes: (number | null)[] = []
  for (const [command = '', ...more] of commands) {
    const isTurn = command === 'agent'
    const { code } = isTurn ? await turn(at, [{ text: 'on' }], more, { through: alone }) : await at.run([command, ...more])
    codes.push(code)
  }
  return codes
}

always('the table has a row for each alteration, and an alteration for each row', () => {
  expect(rows.map(([words]) => words).sort()).toEqual(Object.keys(alterations).sort())
  expect(commands.map(([name]) => name)).toEqual(['receipt', 'receipt', 'rebuild', 'replay', 'agent'])
})

for (const [words = '', ...expected] of rows) {
  test(`${words}: ${expected.join(', ')}`, async () => {
    expect((await codesAfter(words)).map(String)).toEqual(expected.map((cell) => (cell === '–' ? '0' : cell)))
  }, 120_000)
}
