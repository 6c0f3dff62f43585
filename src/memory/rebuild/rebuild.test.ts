import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import {
  acting,
  callOf,
  createMemoryStage,
  finish,
  type MemoryStage,
  recordSteps,
  refusing,
  replied,
  runOf,
  searchIn,
  started,
} from '../fixture.ts'

let memoryStage: MemoryStage
beforeEach(() => {
  memoryStage = createMemoryStage()
  const { memory, clock } = memoryStage
  const recorder = recordSteps({ memory, log: () => {}, now: () => clock.now++, redact: (event) => event })
  for (const number of [1, 2]) {
    const run = runOf(number, { conversationId: `conversation-${number}` })
    const [call, other] = [callOf('a'), callOf('b')]
    recorder.external(run, started(`question ${number}: größer 東京`))
    recorder.external(
      run,
      replied([
        { type: 'text', text: 'let me see' },
        { type: 'call', ...call },
        { type: 'call', ...other },
      ]),
    )
    recorder.intent(run, acting(call))
    recorder.denied(run, refusing(other))
    recorder.external(run, { type: 'tool.done', id: 'a', outcome: { status: 'allowed', output: 'contents', metadata: { z: 1, a: 2 } } })
    recorder.external(run, replied([{ type: 'text', text: 'answer' }]))
    recorder.finished(run, finish, 'digest')
  }
  // The first search updates the index.
  searchIn(memoryStage)({ query: 'answer' })
})
afterEach(() => memoryStage.remove())

function alter(sql: string): void {
  using db = new Database(memoryStage.path)
  db.run(sql)
}

const check = async () => (await memoryStage.memory.projections()).check()
const differenceIn = async (number: number) =>
  (await memoryStage.memory.projections()).differenceIn(runOf(number, { conversationId: `conversation-${number}` }))

describe('a check', () => {
  test.each([
    ['an edited turn', `UPDATE turns SET content = 'other' WHERE id = 3`, 'the turn of journal entry'],
    ['a turn that was taken away', 'DELETE FROM turns WHERE id = 3', 'is missing'],
    [
      'a turn that nobody took',
      `INSERT INTO turns SELECT 99, 999, run_id, conversation_id, turn_id, at, role, 'planted', tool_calls,
      tool_results, provider, model, metadata FROM turns WHERE id = 1`,
      'the turn of journal entry 999 is not in the journal',
    ],
    ['an edited title', `UPDATE conversations SET title = 'other'`, 'conversation conversation-1 is not what the journal says'],
    ['a word taken out of the index', `INSERT INTO turns_fts(turns_fts, rowid, content) VALUES ('delete', 5, 'answer')`, 'in the index'],
    ['a planted word', `INSERT INTO turns_fts(rowid, content) VALUES (2, 'zebra')`, 'the word "zebra" in the index'],
    ['an edited journal', `UPDATE journal SET body = replace(body, 'contents', 'lies')`, 'the turn of journal entry'],
    ['a journal that is no JSON', `UPDATE journal SET body = '{' WHERE seq = 2`, 'journal entry 2 of run-1 is not valid JSON'],
  ])('names %s', async (_, sql, words) => {
    alter(sql)
    const { equal, difference } = await check()
    expect([equal, difference]).toEqual([false, expect.stringContaining(words)])
  })

  test('of what is whole says so, changes nothing and leaves nothing behind', async () => {
    const before = [...memoryStage.memory.conversations.exportJsonl()]
    const { equal, live, rebuilt, turns } = await check()
    expect({ equal, same: live === rebuilt, turns }).toEqual({ equal: true, same: true, turns: 10 })
    expect([...memoryStage.memory.conversations.exportJsonl()]).toEqual(before)
    expect(readdirSync(dirname(memoryStage.path)).filter((name) => name.startsWith('rebuild'))).toEqual([])
    expect((await check()).live).toBe(live)
  })
})

test('both tell how far they are', async () => {
  for (const step of ['check', 'rebuild'] as const) {
    const shares: number[] = []
    ;(await memoryStage.memory.projections())[step]((share) => shares.push(share))
    expect(shares.length).toBeGreaterThan(0)
    expect(shares.every((share) => share > 0 && share <= 1)).toBe(true)
  }
})

test('a rebuild over a journal that cannot be read leaves all as it was', async () => {
  alter(`UPDATE journal SET body = '{' WHERE seq = 2`)
  const before = [...memoryStage.memory.conversations.exportJsonl()]
  expect((await memoryStage.memory.projections()).rebuild()).toMatchObject({ ok: false, message: expect.stringContaining('entry 2') })
  expect([...memoryStage.memory.conversations.exportJsonl()]).toEqual(before)
})

test('a rebuild brings back what was altered, lost and planted, search included', async () => {
  const whole = await check()
  alter(`DELETE FROM turns WHERE id > 4; `)
  alter(`UPDATE turns SET content = 'lies'`)
  alter('DELETE FROM conversations')
  alter(`INSERT INTO turns_fts(rowid, content) VALUES (77, 'zebra')`)
  expect((await check()).equal).toBe(false)
  expect((await memoryStage.memory.projections()).rebuild()).toEqual({ ok: true, turns: 10 })
  expect(await check()).toEqual(whole)
  expect(searchIn(memoryStage)({ query: 'größer' })).toHaveLength(2)
})

describe('the turns of one run', () => {
  test.each([
    ['edited', `UPDATE turns SET content = 'other' WHERE run_id = 'run-1' AND role = 'tool'`],
    ['missing', `DELETE FROM turns WHERE run_id = 'run-1' AND role = 'user'`],
    ['no JSON', `UPDATE turns SET metadata = '{' WHERE run_id = 'run-1'`],
  ])('are said to differ when one is %s', async (_, sql) => {
    alter(sql)
    expect([await differenceIn(1), await differenceIn(2)]).toEqual([expect.stringContaining('of run-1'), undefined])
  })

  test('agree with their journal', async () => {
    expect([await differenceIn(1), await differenceIn(2)]).toEqual([undefined, undefined])
  })
})
