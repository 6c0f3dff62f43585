/** Tests docs/seeds.md: each switch that it names for the other reading of a specification is one that the program has. */

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { nest } from './support/cli.ts'

const page = readFileSync(join(import.meta.dir, '../docs/seeds.md'), 'utf8')
const codes = [...page.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)
const settings = codes.flatMap((code) => /^(\w+)\.(\w+) = (.+)$/.exec(code)?.slice(1, 4).join(' ') ?? [])

test('each row says what was chosen, and each table has one width', () => {
  const tables = page.split(/\n\n/).map((part) => part.split('\n').filter((line) => line.startsWith('|')))
  const rows = tables.filter((table) => table.length > 2)
  expect(rows.length).toBeGreaterThanOrEqual(6)
  for (const table of rows) {
    const widths = new Set(table.map((line) => line.split('|').length))
    expect({ first: table[0], widths: [...widths].length }).toEqual({ first: table[0], widths: 1 })
    for (const line of table) expect(line).not.toMatch(/\|\s*\|/)
  }
})

test.each(settings)('%s is a setting', async (line) => {
  const [section = '', key = '', ...value] = line.split(' ')
  using at = nest()
  at.config(`[${section}]\n${key} = ${value.join(' ')}\n`)
  expect(await at.run(['config', 'validate'])).toMatchObject({ code: 0, stderr: '' })
  const shown = JSON.parse((await at.run(['config', 'show', '--origin', '--json'])).stdout)
  expect(shown.origins[`${section}.${key}`]?.source).toBe('user')
})

test('the commands and flags of the page are there', async () => {
  using at = nest()
  const named = [
    ['init', '--seed-defaults'],
    ['filter', '--tool-backend', '--tool-env', '--sandbox', '--resume', '--agent'],
    ['control agent add', '--no-heartbeat', '--role'],
    ['control agent edit', '--heartbeat'],
    ['control serve', '--compat-from'],
    ['stdio'],
    ['serve'],
    ['tool loop'],
  ] as const
  for (const [command, ...flags] of named) {
    const { code, stdout } = await at.run(['help', ...command.split(' ')])
    expect([command, code, flags.filter((flag) => !new RegExp(`${flag}\\b`).test(stdout))]).toEqual([command, 0, []])
    for (const word of [command === 'filter' ? 'specification' : command, ...flags]) expect(page).toContain(word)
  }
})
