/**
 * Compares the tool tables with a second, deliberate copy: a word added to or removed from a table changes what may run, and no example
 * covers every word. Whoever intends a change updates the copy with `UPDATE_TABLES=1 bun test ./src/security/command/tools/tables.test.ts`
 * and reads the difference.
 */

import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as names from '../names.ts'
import { gitRules } from './git.ts'
import { toolRules } from './table.ts'

const path = join(import.meta.dir, 'tables.fixture.json')
const tables = plain({ toolRules, gitRules, names: { ...names } })

/** As JSON: sets become lists, and a check counts only as present. */
function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_, each) => (each instanceof Set ? [...each] : typeof each === 'function' ? 'a check' : each), 1),
  )
}

if (process.env.UPDATE_TABLES) writeFileSync(path, `${JSON.stringify(tables, null, 2)}\n`)
const agreed: { readonly [table: string]: { readonly [name: string]: unknown } } = JSON.parse(readFileSync(path, 'utf8'))

test.each(Object.keys(agreed))('%s says of each name what was agreed on', (table) => {
  const now: { readonly [name: string]: unknown } = Object(Object(tables)[table])
  expect(Object.keys(now).sort()).toEqual(Object.keys(agreed[table] ?? {}).sort())
  for (const [name, rule] of Object.entries(agreed[table] ?? {})) expect([name, now[name]]).toEqual([name, rule])
})
