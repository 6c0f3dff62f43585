/** What the record proves: what somebody altered is found and named by every check, and what a crash left is not called altered. */

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { copyOf } from '../support/alterations.ts'
import { type Nest, nest } from '../support/cli.ts'
import { isDeep } from '../support/tier.ts'
import { alone, call, everyTool, home, turn } from '../support/turns.ts'
import { oldHome, unpack } from './homes/unpack.ts'

function alter(at: Nest, sql: string): void {
  using db = new Database(join(at.home, '.braidclaw/memory.sqlite'))
  expect(db.run(sql).changes).toBeGreaterThan(0)
}

const deep = (at: Nest, ...more: string[]) => at.run(['receipt', 'verify', '--deep', ...more])

test('a call whose process was killed is unfinished, not altered, until the next start gives it a result', async () => {
  using at = nest()
  unpack(oldHome, at)
  const { code, stdout, stderr } = await deep(at)
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^valid: \d+ receipts/)])
  expect(stderr).toMatch(/^unfinished: call \S+ \(shell\) of run \S+ began before its process died; the next start gives it a result\n$/)
  expect(JSON.parse((await deep(at, '--json')).stdout)).toMatchObject({ ok: true, deep: [], unfinished: [expect.any(String)] })
  expect((await at.run(['agent', '-m', 'hello'])).code).toBe(0)
  expect(await deep(at)).toMatchObject({ code: 0, stderr: '' })
})

test('a call whose result was taken out of the journal is altered, and not unfinished', async () => {
  using at = nest()
  unpack(oldHome, at)
  alter(at, 'DELETE FROM intents')
  expect(await deep(at)).toMatchObject({ code: 9, stdout: expect.stringContaining('began, and its result is gone') })
})

let talked: Nest
beforeAll(async () => {
  talked = home()
  expect((await turn(talked, [call('file_list', { path: '.' }), { text: 'it costs 100 euros' }])).code).toBe(0)
})
afterAll(() => talked[Symbol.dispose]())

const lastRun = `run_id = (SELECT run_id FROM runs ORDER BY rowid DESC LIMIT 1)`
const cutEnd = `DELETE FROM journal WHERE type = 'finish' AND ${lastRun}`

const ends: readonly (readonly [name: string, sql: readonly string[], says: string | RegExp])[] = [
  ['the end was cut off', [cutEnd], 'its end is gone from the journal'],
  [
    'the end was cut off, and is denied by the list of runs',
    [cutEnd, 'UPDATE runs SET ended = NULL, code = NULL'],
    /has ended, but|the seal of its end is not/,
  ],
  ['the end was cut off one entry before it', [`DELETE FROM journal WHERE seq = (SELECT max(seq) - 1 FROM journal)`], 'is not what was'],
  [
    'the answer was edited where the digests were emptied',
    [
      `UPDATE journal SET digest = NULL, body = replace(body, '100 euros', '900 euros')`,
      `UPDATE turns SET content = replace(content, '100 euros', '900 euros')`,
    ],
    'the digests of its entries are gone',
  ],
  ['the seal is not of this end', [`UPDATE runs SET seal = '${'0'.repeat(64)}'`], 'the seal of its end is not of this run'],
  ['the run was given to another conversation', [`UPDATE runs SET model = 'another'`, `UPDATE turns SET model = 'another'`], 'the seal of'],
  ['the list of runs tells another end', [`UPDATE runs SET code = 'denied'`], 'ended "answered", the list of runs says "denied"'],
  ['the list of runs tells it in other words', [`UPDATE runs SET message = 'fine'`], 'in other words than the journal'],
]

test.each(ends)('every check says 9 when %s', async (_, sql, says) => {
  using at = copyOf(talked)
  for (const one of sql) alter(at, one)
  const check = async (words: readonly string[]) => {
    const { code, stdout, stderr } = await at.run(words, { through: alone })
    expect({ words, code, said: stdout + stderr }).toEqual({
      words,
      code: 9,
      said: typeof says === 'string' ? expect.stringContaining(says) : expect.stringMatching(says),
    })
  }
  const checks = [
    ['receipt', 'verify', '--deep'],
    ['rebuild', '--check'],
    ['replay', '--all'],
  ]
  const isWhole = isDeep || sql === ends[0]?.[1]
  await Promise.all(checks.slice(0, isWhole ? 3 : 1).map(check))
  await check(['agent', '--resume', 'last', '-m', 'go on'])
})

test('an end is sealed from the first run on, also of one that only talks, and verifies', async () => {
  using at = home()
  expect((await turn(at, [{ text: 'hello' }])).code).toBe(0)
  for (const words of [
    ['receipt', 'verify', '--deep'],
    ['rebuild', '--check'],
    ['replay', '--all'],
  ])
    expect((await at.run(words)).code).toBe(0)
  alter(at, cutEnd)
  expect((await deep(at)).stdout).toContain('its end is gone from the journal')
})

test('without receipts there is no seal, and what the journal tells alone is still checked', async () => {
  using at = home()
  at.config(everyTool.replace(/(?<=\[receipts\]\n)enabled = true/, 'enabled = false'))
  expect((await turn(at, [{ text: 'hello' }])).code).toBe(0)
  expect((await deep(at)).code).toBe(0)
  {
    using db = new Database(join(at.home, '.braidclaw/memory.sqlite'))
    expect(db.query('SELECT seal, entries FROM runs').all()).toEqual([{ seal: null, entries: null }])
  }
  alter(at, cutEnd)
  expect((await deep(at)).code).toBe(9)
})
