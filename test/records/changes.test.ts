/** Changes of commands in the record of the real program: receipts, journal, replay and the deep check agree, and alterations are named. */

import { afterAll, test as always, beforeAll, describe, expect } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { copyOf, sqlite } from '../support/alterations.ts'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { isDeep } from '../support/tier.ts'
import { alone, call, home, turn } from '../support/turns.ts'

const test = always.if(needs('bwrap'))

const shell = (command: string) => call('shell', { command })
const state = (at: Nest, name: string) => join(at.home, '.braidclaw', name)
const receipts = (at: Nest): { tool: string; status: string; changes?: string; approval?: string; v: number }[] =>
  readFileSync(state(at, 'tool_receipts.log'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
const isThere = (at: Nest, name: string) => existsSync(join(at.workspace, name))

const hook = 'mkdir -p r/objects r/refs r/hooks && echo x > r/HEAD && echo x > r/hooks/post-commit'

/** Receipts: 1 applied, 2 pending, 3 nothing changed, 4 dropped by a rule. */
async function madeHome(): Promise<Nest> {
  const at = home('', 'approve_all_medium = true\n')
  expect(await turn(at, [shell('echo one > one.txt'), { text: 'done' }])).toMatchObject({ code: 0 })
  expect(await turn(at, [shell('echo all: > Makefile'), { text: 'waits' }], [], { through: alone })).toMatchObject({ code: 4 })
  expect(await turn(at, [shell('python3 -c 1'), { text: 'read' }])).toMatchObject({ code: 0 })
  expect(await turn(at, [shell(hook), { text: 'no' }], [], { through: alone })).toMatchObject({ code: 3 })
  return at
}

let made: Nest
beforeAll(async () => {
  if (needs('bwrap')) made = await madeHome()
}, 120_000)
afterAll(() => made?.[Symbol.dispose]())

const deep = (at: Nest) => at.run(['receipt', 'verify', '--deep'])

test('each attempt leaves one receipt, which says what became of its changes', async () => {
  expect(receipts(made).map(({ status, changes }) => [status, changes])).toEqual([
    ['allowed', expect.stringMatching(/^[0-9a-f]{64}$/)],
    ['denied', 'pending'],
    ['allowed', 'none'],
    ['denied', 'dropped'],
  ])
  expect(['one.txt', 'Makefile', 'r'].map((name) => isThere(made, name))).toEqual([true, false, false])
  expect(await deep(made)).toMatchObject({ code: 0 })
})

test('every run with changes replays to the same events', async () => {
  const { code, stderr } = await made.run(['replay', '--all'])
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^(run_\w+: the same, .*\n){4}$/)])
})

describe('what another policy would have said', () => {
  const asked = async (at: Nest, from: string, to: string) => {
    const own = readFileSync(state(at, 'config.toml'), 'utf8')
    const policy = join(at.dir, 'policy.toml')
    writeFileSync(policy, own.replace(from, to))
    const { code, stdout } = await at.run(['replay', '--all', '--policy', policy])
    expect(code).toBe(0)
    return stdout.replaceAll(/run_\w+/g, 'RUN').split('\n')
  }

  test('the same policy says the same of calls and changes; what was dropped is no longer kept', async () => {
    expect((await asked(made, 'x', 'x')).filter((line) => !line.startsWith('RUN: 0 of 1 call'))).toEqual([
      '  event 4, the changes of call_1: deny by changes.git as recorded; they are no longer kept, so not judged again',
      '',
    ])
  })

  test('a stricter one is shown where it would have decided otherwise, the changes too', async () => {
    const at = made
    const lines = await asked(at, 'forbidden_paths = [', `forbidden_paths = ["${join(at.workspace, 'one.txt')}", `)
    expect(lines).toContainEqual(expect.stringMatching(/the changes of call_1: (apply|ask) by changes\.\w+ → deny by /))
  })
})

describe('the deep check names what was altered', () => {
  const other = 'd2'.repeat(32)
  const ofRun = (number: number) => `run_id = (SELECT run_id FROM runs ORDER BY rowid LIMIT 1 OFFSET ${number})`
  const body = (type: string, run: number, from: string, to: string) =>
    `UPDATE journal SET body = replace(body, ${from}, '${to}') WHERE type = '${type}' AND ${ofRun(run)}`
  const digest = `(SELECT json_extract(body, '$.review.digest') FROM journal WHERE type = 'tool.changed' AND ${ofRun(0)})`
  const late = `(SELECT json_extract(body, '$.review.digest') FROM journal WHERE type = 'tool.changed' AND ${ofRun(1)})`

  const cases = [
    ['the digest of what a command changed', body('tool.changed', 0, digest, other)],
    ['the digest of what was applied', body('apply', 0, digest, other)],
    ['the digest in the result', body('tool.done', 0, digest, other)],
    ['an application taken out', `DELETE FROM journal WHERE type = 'apply' AND ${ofRun(0)}`],
    ['the digest of what waits', body('drop', 1, late, other)],
    ['dropped changes said to wait', body('drop', 3, `'"by":"changes.git"'`, '"by":"approval.nobody"')],
    ['a drop taken out', `DELETE FROM journal WHERE type = 'drop' AND ${ofRun(3)}`],
    ['what a command printed before its changes were dropped', body('drop', 1, `'"output":"'`, '"output":"x')],
  ] as const

  test.each(isDeep ? cases : cases.filter((_, number) => number % 2 === 0))('%s', async (_, sql) => {
    using at = copyOf(made)
    sqlite(at, `${sql}; UPDATE journal SET digest = NULL; UPDATE runs SET seal = NULL, entries = NULL`)
    const { code, stderr, stdout } = await deep(at)
    expect([code, `${stdout}${stderr}`]).toEqual([9, expect.stringMatching(/call call_1 \(shell\) of run/)])
  })
})
