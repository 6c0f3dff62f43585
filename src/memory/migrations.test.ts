import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSearch } from './conversations/search-turns.ts'
import { openMemory } from './memory.ts'
import { migrations, sealedSince } from './migrations.ts'

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
  const { journal, conversations, context, store } = opened.memory
  const search = createSearch(store, () => 0)

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

test.each([1, 8, sealedSince - 1])(
  'approvals and rules that a database of schema %d has are sealed once; what comes later unsealed does not count',
  (schema) => {
    databaseOf(schema)
    const insert = (id: string, rule: string) => {
      using db = new Database(path)
      db.run(
        `INSERT INTO approvals(id, run_id, conversation_id, call_id, tool, risk, reason, summary, plan, created, expires, state)
       VALUES (?, 'r', 'c', 'x', 'file_write', 'medium', 'it writes', 'a.txt', 'p', 0, 600000, 'open')`,
        [id],
      )
      db.run(`INSERT INTO always_rules(tool, scope, added_by, added_at) VALUES ('shell', ?, 'terminal', 1)`, [rule])
    }
    insert('r/x', 'old')
    const open = (key = 'k') => {
      const opened = openMemory({ path, log: () => {}, now: () => 10, seal: (text) => `${key} ${text}` })
      if (!opened.ok) throw new Error(opened.failure.message)
      return opened.memory
    }
    open().close()
    insert('r/y', 'new')
    const { approvals, close } = open()
    expect([approvals.get('r/x')?.state, approvals.get('r/y')?.state]).toEqual(['open', 'altered'])
    expect(approvals.decide({ id: 'r/x', allow: true, by: 'ann' })).toEqual({ ok: true })
    expect(approvals.decide({ id: 'r/y', allow: true, by: 'ann' })).toMatchObject({ ok: false, altered: true })
    expect([approvals.hasRule('shell', 'old'), approvals.hasRule('shell', 'new')]).toEqual([true, false])
    expect(approvals.rules().map(({ scope }) => scope)).toEqual(['old'])
    approvals.addRule({ tool: 'shell', scope: 'new', by: 'ann' })
    expect(approvals.hasRule('shell', 'new')).toBe(true)
    close()
    const other = open('another key')
    expect([other.approvals.get('r/x')?.state, other.approvals.rules()]).toEqual(['altered', []])
    other.close()
  },
)
