import { expect, test } from 'bun:test'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqlite } from '../store/open-sqlite.ts'
import { createReplyStore } from './open-control.ts'

const name = { owner: 'operator:1', key: 'k', digest: 'd' }
const reply = { status: 201, type: 'application/json', body: '{"a":"b\\nc"}\nmore' }

test('an answer is kept and given again, also by the next daemon; another request with the key is told so', async () => {
  const path = join(mkdtempSync(join(tmpdir(), 'replies-')), 'control.sqlite')
  const first = await openSqlite({ path, log: () => {} })
  const replies = createReplyStore({ store: first, now: Date.now, daemon: 'one' })
  expect(await replies.begin(name)).toEqual({ state: 'new' })
  expect(await replies.begin(name)).toEqual({ state: 'here' })
  expect(await replies.begin({ ...name, digest: 'other' })).toEqual({ state: 'other' })
  expect(await replies.begin({ ...name, owner: 'agent:1' })).toEqual({ state: 'new' })
  await replies.finish(name, reply)
  await first.close()
  const second = await openSqlite({ path, log: () => {} })
  const later = createReplyStore({ store: second, now: Date.now, daemon: 'two' })
  expect(await later.begin(name)).toEqual({ state: 'done', reply })
  // The first daemon died while it answered this one.
  expect(await later.begin({ ...name, owner: 'agent:1' })).toEqual({ state: 'lost' })
  await second.close()
})

test('a request that was refused is forgotten, an answer that was given is not', async () => {
  const store = await openSqlite({ path: ':memory:', log: () => {} })
  const replies = createReplyStore({ store, now: Date.now, daemon: 'one' })
  await replies.begin(name)
  await replies.forget(name)
  expect(await replies.begin(name)).toEqual({ state: 'new' })
  await replies.finish(name, reply)
  await replies.forget(name)
  expect(await replies.begin(name)).toEqual({ state: 'done', reply })
  await store.close()
})

test('with several daemons a request of another one is lost only after a while', async () => {
  const store = await openSqlite({ path: ':memory:', log: () => {} })
  const clock = { at: 1_000_000 }
  const shared = { write: store.write, dialect: { ...store.dialect, engine: 'postgres' as const } }
  const [one, two] = ['one', 'two'].map((daemon) => createReplyStore({ store: shared, now: () => clock.at, daemon }))
  await one?.begin(name)
  expect(await two?.begin(name)).toEqual({ state: 'elsewhere' })
  clock.at += 120_001
  expect(await two?.begin(name)).toEqual({ state: 'lost' })
  await store.close()
})
