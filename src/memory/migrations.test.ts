import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openMemory } from './memory.ts'
import { migrations } from './migrations.ts'

let folder = ''
let path = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'braidclaw-schema-'))
  path = join(folder, 'memory.sqlite')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const run = { runId: 'r', conversationId: 'c', turnId: 't', provider: 'p', model: 'm', channel: 'cli' }

/** Creates the database as the program of that schema left it: one question and its answer. */
function databaseOf(schema: number): void {
  const db = new Database(path, { create: true })
  for (const step of migrations.slice(0, schema)) db.run(step)
  db.run(`PRAGMA user_version = ${schema}`)
  db.run(
    `INSERT INTO runs(run_id, conversation_id, turn_id, provider, model, channel, owner, started, ended, code, message, digest) VALUES ('r', 'c', 't', 'p', 'm', 'cli', '1@0', 1, 2, 'answered', '', NULL)`,
  )
  db.run(`INSERT INTO conversations VALUES ('c', 1, 2, 1, 'hello', 8)`)
  for (const [seq, type, role, body] of [
    [7, 'run.start', 'user', '{"type":"run.start","message":"hello"}'],
    [8, 'model.done', 'assistant', '{"type":"model.done","parts":[{"type":"text","text":"hi"}],"proposals":[]}'],
  ] as const) {
    db.run(`INSERT INTO journal(seq, run_id, kind, type, at, body) VALUES (?, 'r', 'external', ?, 1, ?)`, [seq, type, body])
    db.run(
      `INSERT INTO turns(journal_seq, run_id, conversation_id, turn_id, at, role, content, provider, model, metadata)
       VALUES (?, 'r', 'c', 't', 1, ?, ?, 'p', 'm', '{"run_id":"r"}')`,
      [seq, role, role === 'user' ? 'hello' : 'hi'],
    )
  }
  db.close()
}

test.each(migrations.slice(1).map((_, at) => at + 1))('a database of schema %d is brought up to date and keeps what it holds', (schema) => {
  databaseOf(schema)
  const opened = openMemory({ path, log: () => {}, now: () => 0 })
  if (!opened.ok) throw new Error(opened.failure.message)
  const { journal, conversations, context, search } = opened.memory

  expect(journal.events('r').map(({ seq, type }) => [seq, type])).toEqual([
    [7, 'run.start'],
    [8, 'model.done'],
  ])
  expect(conversations.list()).toMatchObject([{ conversationId: 'c', turns: 1, title: 'hello' }])
  expect(conversations.show('c').map(({ role, content }) => [role, content])).toEqual([
    ['user', 'hello'],
    ['assistant', 'hi'],
  ])
  expect(context('c', 1000).messages).toHaveLength(2)
  expect(search({ query: 'hello' })).toHaveLength(1)
  expect(journal.append({ run, kind: 'note', type: 'x', at: 1, body: {} })).toBe(9)
  opened.memory.close()
  const db = new Database(path, { readonly: true })
  expect(db.query('PRAGMA user_version').get()).toEqual({ user_version: migrations.length })
  db.close()
})
