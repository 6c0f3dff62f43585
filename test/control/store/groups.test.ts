/** Commands that are asked for at once share a transaction, some of them statement by statement: each still happens wholly or not at all. */

import { expect, test } from 'bun:test'
import type { Command } from '../../../src/control/contract/store-port.ts'
import { nextId, queryNumber } from '../../../src/control/plane/command.ts'
import { eventsLast } from '../../../src/control/plane/events.ts'
import { forEachEngine } from '../support/engines.ts'
import { all, anna, draft, taskPlane } from '../support/task-plane.ts'

forEachEngine('groups of commands', (open, engine) => {
  const beside = (key: string) => ({ kind: 'test', key })

  /** Begins, asks the database three times and ends; `log` has the order in which the commands of a test did so. */
  function steps(log: string[], name: string): () => Command<void> {
    return function* () {
      log.push(`${name} begins`)
      for (let count = 0; count < 3; count += 1) yield* queryNumber('SELECT 1 AS value')
      log.push(`${name} ends`)
    }
  }

  const firstIn = (log: readonly string[], ...texts: readonly string[]) => texts.toSorted((a, b) => log.indexOf(a) - log.indexOf(b))[0]

  test('a command that fails after it wrote undoes its own writes and events alone', async () => {
    const store = eventsLast(await open())
    const plane = await taskPlane(store)
    function* fails(): Command<void> {
      yield* nextId('runs')
      yield ["INSERT INTO settings (name, value) VALUES ('failed', '')"]
      throw new Error('on purpose')
    }
    const answers = await Promise.allSettled<unknown>([
      plane.tasks.create(anna, draft()),
      store.write(fails, beside('1')),
      store.write(() => nextId('runs'), beside('2')),
      store.write(fails),
      plane.tasks.create(anna, draft()),
    ])
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled'])
    expect(await plane.types()).toEqual(['task.created', 'task.created'])
    expect(await plane.all("SELECT name FROM settings WHERE name = 'failed'")).toEqual([])
    expect(await plane.all("SELECT value FROM sequences WHERE name = 'runs'")).toEqual([{ value: 1 }])
  })

  test('a statement that the database refuses fails its own command alone', async () => {
    const store = await open()
    const insert = () =>
      store.write(function* () {
        yield ["INSERT INTO settings (name, value) VALUES ('one', '')"]
      }, beside(crypto.randomUUID()))
    const answers = await Promise.allSettled<unknown>([insert(), insert(), store.write(() => nextId('runs'), beside('3'))])
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(await store.read(() => all('SELECT name FROM settings'))).toEqual([{ name: 'one' }])
  })

  test('a refusal before the first write costs the others of its group nothing', async () => {
    const store = await open()
    const state = { runs: 0 }
    function* counted(): Command<number> {
      state.runs += 1
      return yield* nextId('runs')
    }
    // biome-ignore lint/correctness/useYield: it refuses before it asks anything
    function* refuses(): Command<void> {
      throw new Error('on purpose')
    }
    const answers = await Promise.allSettled<unknown>([store.write(counted, beside('1')), store.write(refuses, beside('2'))])
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
    if (engine === 'postgres') expect(state.runs).toBe(1)
  })

  test('commands with the same key never run beside each other', async () => {
    const store = await open()
    const log: string[] = []
    await Promise.all(['a', 'b', 'a'].map((key, at) => store.write(steps(log, `${key}${at}`), beside(key))))
    expect(firstIn(log, 'a0 ends', 'a2 begins')).toBe('a0 ends')
    if (engine === 'postgres') expect(firstIn(log, 'a0 ends', 'b1 begins')).toBe('b1 begins')
  })

  test('a command without a kind, and one of another kind, wait for their turn', async () => {
    const store = await open()
    const log: string[] = []
    await Promise.all([
      store.write(steps(log, 'one'), beside('1')),
      store.write(steps(log, 'plain')),
      store.write(steps(log, 'other'), { kind: 'other', key: '1' }),
    ])
    expect(log).toHaveLength(6)
    for (let at = 0; at < 6; at += 2) expect(log[at + 1]).toBe(log[at]?.replace('begins', 'ends') ?? '')
  })

  test('a command that goes on alone waits until the others of its batch have ended or wait as well', async () => {
    const store = await open()
    const log: string[] = []
    const exclusive = (name: string) =>
      function* (): Command<void> {
        yield* queryNumber('SELECT 1 AS value')
        yield* store.exclusive()
        yield* steps(log, name)()
      }
    await Promise.all([
      store.write(exclusive('x'), beside('1')),
      store.write(exclusive('y'), beside('2')),
      store.write(steps(log, 'plain'), beside('3')),
    ])
    const alones = log.filter((entry) => !entry.startsWith('plain'))
    expect(alones).toEqual(['x begins', 'x ends', 'y begins', 'y ends'])
    if (engine === 'postgres') expect(log.slice(0, 2)).toEqual(['plain begins', 'plain ends'])
  })

  test('claims at once: each task goes to one of them, and one whose own budget is spent waits under that name, once', async () => {
    const store = await open()
    const plane = await taskPlane(store)
    for (let at = 0; at < 8; at += 1) await plane.addAgent(`w${at}`)
    await plane.tasks.create(anna, draft({ budget_tokens: 5, priority: 'urgent' }))
    await store.write(function* () {
      yield ['UPDATE tasks SET tokens_used = 5 WHERE id = 1']
    })
    for (let count = 0; count < 6; count += 1) await plane.tasks.create(anna, draft())
    const claims = await Promise.all(Array.from({ length: 8 }, (_, at) => plane.claim(`w${at}`)))
    const granted = claims.flatMap((claim) => (claim ? [claim] : []))
    expect(granted.map(({ task }) => task.task_id).toSorted()).toEqual([2, 3, 4, 5, 6, 7].map((number) => `TASK-00${number}`))
    expect(new Set(granted.map(({ run_id }) => run_id)).size).toBe(6)
    expect(await plane.tasks.get(anna, 'TASK-001')).toMatchObject({ status: 'budget_blocked' })
    expect((await plane.types()).filter((type) => type === 'task.budget_blocked')).toHaveLength(1)
  })
})
