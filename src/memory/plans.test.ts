/** Tests that a query about one run or one conversation never scans all of them. */

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSummaries } from './conversations/compaction-source.ts'
import { addTurn, createConversations } from './conversations/conversations.ts'
import { createContext } from './conversations/model-context.ts'
import { createSearch } from './conversations/search-turns.ts'
import { attempts } from './journal/attempts.ts'
import { createJournal } from './journal/journal.ts'
import { createProjections } from './rebuild/rebuild.ts'
import { openStore, type Store } from './store.ts'

let folder = ''
let store: Store
const asked = new Set<string>()
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'braidclaw-plans-'))
  const opened = openStore({ path: join(folder, 'memory.sqlite'), log: () => {} })
  if (!opened.ok) throw new Error(opened.failure.message)
  const sql: Store['sql'] = (text: string) => {
    asked.add(text)
    return opened.store.sql(text)
  }
  store = { ...opened.store, sql }
  asked.clear()
})
afterEach(() => {
  store.close()
  rmSync(folder, { recursive: true, force: true })
})

const run = { runId: 'r', conversationId: 'c', turnId: 't', provider: 'p', model: 'm', channel: 'cli' }
const summarise = async () => ({ ok: true as const, text: 'They talked.', model: 'm' })

/** Tables that grow with every turn; the one index that does not grow with them contains only runs without an end. */
const walks = /^SCAN (?:runs|journal|turns|summaries)\b(?! USING INDEX runs_open$)/

function plansOf(text: string): string[] {
  // A numbered parameter counts once.
  const parameters = (text.match(/\?\d*/g) ?? []).filter((name, at, all) => name === '?' || all.indexOf(name) === at)
  const values = parameters.map(() => null)
  const steps = store.sql<{ detail: string }, null[]>(`EXPLAIN QUERY PLAN ${text}`)
  return steps.all(...values).map(({ detail }) => detail)
}

test('a question about one run or one conversation finds its rows by an index', async () => {
  const journal = createJournal(store, (turn, at) => addTurn(store, turn, at))
  const { show, exportJsonl, has, latestIn } = createConversations(store)
  const talk = (runId: string) => {
    journal.append({ run: { ...run, runId }, kind: 'external', type: 'run.start', at: 1, body: { prompt: 'hello' } })
    journal.append({ run: { ...run, runId }, kind: 'external', type: 'model.done', at: 2, body: { parts: [{ type: 'text', text: 'hi' }] } })
  }
  for (const runId of ['r', 's', 't']) {
    talk(runId)
    journal.end(runId, { at: 3, code: 'answered', message: '', digest: null })
  }
  talk('u')
  asked.clear()
  expect(journal.unfinished()).toHaveLength(1)
  expect(journal.runs({ limit: 9, conversation: 'c' })).toHaveLength(4)
  expect([journal.events('r').length, journal.run('r')?.runId, journal.alteredIn('u')]).toEqual([2, 'r', undefined])
  expect([journal.hasEntries('r'), journal.hasEntries('x')]).toEqual([true, false])
  expect([has('c'), has('d'), show('c').length, [...exportJsonl('c')].length]).toEqual([true, false, 8, 8])
  expect([...attempts(store, 'r')]).toEqual([])
  expect(latestIn('/elsewhere')).toBeUndefined()
  for (const query of ['nowhere', 'no c++', '東京']) expect(createSearch(store, () => 1)({ query })).toEqual([])
  expect(createContext(store, () => 1)('c', 1000).messages).toHaveLength(8)
  expect(createProjections(store).differenceIn(run)).toBeUndefined()
  const lengths = { max: 2, keep: 2, portionBytes: 10_000 }
  const request = { conversationId: 'c', lengths, summarise, signal: new AbortController().signal }
  expect(await createSummaries(store, { now: () => 1, log: () => {} }).compact(request)).toMatchObject({ state: 'done' })
  expect(createContext(store, () => 1)('c', 1000).summarisedTurns).toBeGreaterThan(0)

  const texts = [...asked].filter((text) => /^\s*(?:SELECT|UPDATE|DELETE)/.test(text))
  const walking = texts.flatMap((text) => plansOf(text).flatMap((step) => (walks.test(step) ? [`${step}: ${text}`] : [])))
  expect(texts.length).toBeGreaterThan(15)
  expect(walking).toEqual([])
})
