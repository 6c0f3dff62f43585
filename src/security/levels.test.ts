/**
 * Tests what each level of autonomy decides about commands, one line each: "readonly supervised full" and the command. Commands that hide
 * a forbidden command come first; where full allows one of these, reading the command cannot find the hidden part (a file, a decoder).
 */

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defaultAllow } from './command/allow.ts'
import { callOf, gateOf } from './gate.fixture.ts'

type Row = { readonly levels: string; readonly command: string }

function rowsOf(file: string): readonly Row[] {
  const lines = readFileSync(join(import.meta.dir, file), 'utf8')
    .trimEnd()
    .split('\n')
  return lines.map((line) => {
    const [levels = '', command = '']: string[] = JSON.parse(line)
    return { levels, command }
  })
}

const hidden = rowsOf('hidden.fixture.jsonl')
const everyday = rowsOf('everyday.fixture.jsonl')
const refused = 'deny deny deny'

const gates = (['readonly', 'supervised', 'full'] as const).map((autonomy) =>
  gateOf({ autonomy, allowCommands: defaultAllow }, { resolve: (name) => `/usr/bin/${name}` }),
)

async function levelsOf(command: string): Promise<string> {
  const said = await Promise.all(gates.map((gate) => gate.judge(callOf('shell', { command }))))
  return said.map(({ verdict }) => verdict).join(' ')
}

async function asJudged(rows: readonly Row[]): Promise<readonly Row[]> {
  return Promise.all(rows.map(async ({ command }) => ({ levels: await levelsOf(command), command })))
}

test('a forbidden command is refused at every level, however it is spelt', async () => expect(await asJudged(hidden)).toEqual([...hidden]))

test('the table holds at least 90 spellings that are refused', () =>
  expect(hidden.filter(({ levels }) => levels === refused).length).toBeGreaterThanOrEqual(90))

test('everyday commands are judged as before', async () => expect(await asJudged(everyday)).toEqual([...everyday]))

test('of everyday commands at most two in a hundred are refused at every level', () =>
  expect(everyday.filter(({ levels }) => levels === refused).length / everyday.length).toBeLessThanOrEqual(0.02))
