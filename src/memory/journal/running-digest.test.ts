import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createMemoryStage, type MemoryStage, replied, runOf, started } from '../fixture.ts'
import { digestOf, firstAltered, type StoredEntry } from './journal-entry.ts'

let memoryStage: MemoryStage
beforeEach(() => {
  memoryStage = createMemoryStage()
  for (const number of [1, 2])
    for (const text of ['one', 'two', 'three', 'four']) append(number, text === 'one' ? started(text) : replied([{ type: 'text', text }]))
})
afterEach(() => memoryStage.remove())

function append(number: number, body: { readonly type: string }): void {
  memoryStage.memory.journal.append({ run: runOf(number), kind: 'external', type: body.type, at: memoryStage.clock.now++, body })
}

function alter(sql: string): void {
  using db = new Database(memoryStage.path)
  db.run(sql)
}

const altered = (runId = 'run-1') => memoryStage.memory.journal.alteredIn(runId)?.event

/** The third entry of run-1 is number 3 in the whole journal as well. */
const alterations: readonly (readonly [name: string, sql: string, event: number])[] = [
  ['a text edited', `UPDATE journal SET body = replace(body, 'three', 'lies') WHERE seq = 3`, 3],
  ['the very first edited', `UPDATE journal SET body = replace(body, 'one', 'lies') WHERE seq = 1`, 1],
  ['the very last edited', `UPDATE journal SET body = replace(body, 'four', 'lies') WHERE seq = 4`, 4],
  ['a blank added, which means nothing', `UPDATE journal SET body = body || ' ' WHERE seq = 2`, 2],
  ['a time edited', 'UPDATE journal SET at = at + 1 WHERE seq = 3', 3],
  ['a type edited', `UPDATE journal SET type = 'cancel' WHERE seq = 3`, 3],
  ['a kind edited', `UPDATE journal SET kind = 'note' WHERE seq = 3`, 3],
  ['one deleted from the middle', 'DELETE FROM journal WHERE seq = 2', 2],
  ['the first deleted', 'DELETE FROM journal WHERE seq = 1', 1],
  [
    'two swapped',
    'UPDATE journal SET seq = CASE seq WHEN 2 THEN -3 ELSE -2 END WHERE seq IN (2, 3); UPDATE journal SET seq = -seq WHERE seq < 0',
    2,
  ],
  ['a digest taken away', 'UPDATE journal SET digest = NULL WHERE seq = 3', 3],
  ['the first digests taken away', 'UPDATE journal SET digest = NULL WHERE seq < 3', 3],
  ['one moved in from another run', `UPDATE journal SET run_id = 'run-1' WHERE seq = 5`, 5],
  ['one without a digest put in', `INSERT INTO journal(seq, run_id, kind, type, at, body) VALUES (99, 'run-1', 'note', 'x', 1, '{}')`, 5],
  [
    'one with the digest of another put in',
    `INSERT INTO journal SELECT 99, run_id, kind, type, at, body, digest FROM journal WHERE seq = 4`,
    5,
  ],
]

test.each(alterations)('%s is named by its number in the run', (_, sql, event) => {
  alter(sql)
  expect(altered()).toBe(event)
})

test('what is as it was written is not complained of, and one run does not answer for another', () => {
  expect([altered('run-1'), altered('run-2'), altered('run-3')]).toEqual([undefined, undefined, undefined])
  alter(`UPDATE journal SET body = '{}' WHERE seq = 6`)
  expect([altered('run-1'), altered('run-2')]).toEqual([undefined, 2])
})

test('a run that an older program began is believed up to where digests begin, and goes on', () => {
  alter('UPDATE journal SET digest = NULL')
  expect(altered()).toBeUndefined()
  append(1, replied([{ type: 'text', text: 'five' }]))
  expect(altered()).toBeUndefined()
  alter(`UPDATE journal SET body = '{}' WHERE run_id = 'run-1' AND digest IS NOT NULL`)
  expect(altered()).toBe(5)
})

test('an entry that was rolled back leaves nothing in the digest of the next', () => {
  expect(() =>
    memoryStage.memory.transaction(() => {
      append(1, started('lost'))
      throw new Error('undone')
    }),
  ).toThrow('undone')
  append(1, started('kept'))
  expect(altered()).toBeUndefined()
})

test('a recomputed chain of changed entries is a chain: the digest has no key', () => {
  const forged: StoredEntry[] = []
  for (const body of ['{}', '{"a":1}']) {
    const entry = { kind: 'note' as const, type: 'x', at: 1, body }
    forged.push({ ...entry, seq: forged.length + 1, digest: digestOf('run-9', forged.at(-1)?.digest ?? null, entry) })
  }
  expect(firstAltered('run-9', forged)).toBeUndefined()
  expect(firstAltered('run-8', forged)).toMatchObject({ event: 1, seq: 1 })
})
