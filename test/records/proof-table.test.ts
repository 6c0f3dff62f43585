/**
 * The table in docs/proof.md, row by row: the alteration is made, every command of the table is run, and ends as the table says. The fast
 * tier tries one row of each kind.
 */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { alterations, copyOf, madeHome } from '../support/alterations.ts'
import type { Nest } from '../support/cli.ts'
import { isDeep } from '../support/tier.ts'
import { alone, turn } from '../support/turns.ts'

const page = readFileSync(join(import.meta.dir, '../../docs/proof.md'), 'utf8')
const cells = (line: string) =>
  line
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim())
const lines = page.split('\n').filter((line) => cells(line).length === 6)
const [head = [], , ...rows] = lines.map(cells)
const commands = head.slice(1).map((cell) => cell.replaceAll('`', '').split(' '))

/** One alteration of each thing that can be altered, in each of the ways that the commands tell apart. */
const ofEachKind = [
  'nothing',
  'a receipt of another conversation is edited',
  'the log is cut within a line',
  'the head file is deleted',
  'another key is put in its place',
  'the database is an older copy',
  'an entry of the journal is edited',
  'a run with a call is erased wherever it stands',
  'another ending stands in the list of runs',
  'a turn is edited',
  'the configuration is edited',
]

const state: { home?: Nest } = {}
beforeAll(async () => {
  state.home = await madeHome()
})
afterAll(() => state.home?.[Symbol.dispose]())

async function codesAfter(words: string): Promise<(number | null)[]> {
  if (!state.home) throw new Error('no home was made')
  using at = copyOf(state.home)
  await alterations[words]?.(at)
  // The turn writes, so it comes after all that read.
  const read = await Promise.all(commands.slice(0, -1).map(async (words) => (await at.run(words)).code))
  const { code } = await turn(at, [{ text: 'on' }], commands.at(-1)?.slice(1), { through: alone })
  return [...read, code]
}

test('the table has a row for each alteration, and an alteration for each row', () => {
  expect(rows.map(([words]) => words).sort()).toEqual(Object.keys(alterations).sort())
  expect(commands.map(([name]) => name)).toEqual(['receipt', 'receipt', 'rebuild', 'replay', 'agent'])
})

for (const [words = '', ...expected] of isDeep ? rows : rows.filter(([words = '']) => ofEachKind.includes(words))) {
  test(`${words}: ${expected.join(', ')}`, async () => {
    expect((await codesAfter(words)).map(String)).toEqual(expected.map((cell) => (cell === '–' ? '0' : cell)))
  }, 120_000)
}
