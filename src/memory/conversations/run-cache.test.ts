import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createJournal } from '../journal/journal.ts'
import { openStore, type Store } from '../store.ts'
import { addTurn } from './conversations.ts'
import { createContext } from './model-context.ts'

let folder = ''
let store: Store
const asked: string[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'braidclaw-told-'))
  const opened = openStore({ path: join(folder, 'memory.sqlite'), log: () => {} })
  if (!opened.ok) throw new Error(opened.failure.message)
  const sql: Store['sql'] = (text: string) => {
    asked.push(text)
    return opened.store.sql(text)
  }
  store = { ...opened.store, sql }
})
afterEach(() => {
  store.close()
  rmSync(folder, { recursive: true, force: true })
})

function talk(runId: string, ends = true): void {
  const journal = createJournal(store, (turn, at) => addTurn(store, turn, at))
  const run = { runId, conversationId: 'c', turnId: runId, provider: 'p', model: 'm', channel: 'cli' }
  journal.append({ run, kind: 'external', type: 'run.start', at: 1, body: { type: 'run.start', prompt: `ask ${runId}` } })
  journal.append({ run, kind: 'external', type: 'model.done', at: 2, body: { parts: [{ type: 'text', text: `say ${runId}` }] } })
  if (ends) journal.end(runId, { at: 3, code: 'answered', message: '', digest: null })
}

/** Returns how many runs are read while `look` runs. */
function readsOf(look: () => void): number {
  asked.length = 0
  look()
  return asked.filter((text) => /^SELECT role, content/.test(text)).length
}

test('a run that is over is read once; one that goes on, each time', () => {
  for (const runId of ['a', 'b']) talk(runId)
  talk('open', false)
  const context = createContext(store, () => 1)
  const look = () => void context('c', 10_000)
  expect([readsOf(look), readsOf(look)]).toEqual([3, 1])
  talk('d')
  expect([readsOf(look), readsOf(look)]).toEqual([2, 1])
  expect(JSON.stringify(context('c', 10_000))).toBe(JSON.stringify(createContext(store, () => 1)('c', 10_000)))
})

test('what another connection writes is seen by the next look', () => {
  talk('a')
  const context = createContext(store, () => 1)
  expect(JSON.stringify(context('c', 10_000))).toContain('ask a')
  using other = new Database(join(folder, 'memory.sqlite'))
  other.run(`UPDATE turns SET content = 'altered' WHERE role = 'user'`)
  expect(JSON.stringify(context('c', 10_000))).toContain('altered')
})

test('no more is kept than the newest million tokens', () => {
  const context = createContext(store, () => 1)
  const long = 'x'.repeat(1_000_000)
  for (const runId of ['a', 'b', 'c', 'd', 'e', 'f']) talk(`${runId}${long}`)
  const look = () => void context('c', 100_000_000)
  expect(readsOf(look)).toBe(6)
  expect(readsOf(look)).toBeGreaterThan(0)
})
