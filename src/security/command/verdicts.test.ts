/**
 * Compares the verdicts for some thousand commands: verdict, rule, what would be executed, what would be written. Each command was chosen
 * because it alone detects some small change to the judge. After an intended change, rewrite the table with `VERDICTS=write bun test
 * ./src/security/command/verdicts.test.ts` and read the difference: every line of it is a decision.
 */

import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { verdictOf } from './policy.fixture.ts'

const path = join(import.meta.dir, 'verdicts.fixture.jsonl')

function lineOf(command: string): string {
  const { verdict, risk, rule, plan, executables, writes } = verdictOf(command)
  const shown = plan === undefined ? null : plan.kind === 'script' ? plan.script : [plan.executable, ...plan.argv]
  return JSON.stringify([command, verdict === 'blocked' ? verdict : risk, rule, shown, executables, writes])
}

function commandIn(line: string): string {
  const [command]: string[] = JSON.parse(line)
  return command ?? ''
}

const known = readFileSync(path, 'utf8').trimEnd().split('\n')
if (process.env.VERDICTS === 'write') writeFileSync(path, known.map((line) => `${lineOf(commandIn(line))}\n`).join(''))

const parts = 25
test.each(Array.from({ length: parts }, (_, part) => part))('every command of the table is judged as the table has it, part %i', (part) => {
  for (const line of known.filter((_, at) => at % parts === part)) expect(lineOf(commandIn(line))).toBe(line)
})

test('every refusal says why in one line that shows nothing hidden', () => {
  const reasons = known.map((line) => verdictOf(commandIn(line)).reason)
  expect(reasons.filter((reason) => reason.length < 12 || reason.length > 400 || /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(reason))).toEqual([])
})

test('the table is there', () => expect(known.length).toBeGreaterThan(500))
