import { expect, test } from 'bun:test'
import type { ControlEvent } from '../../../src/control/contract/activity-shapes.ts'
import type { Caller } from '../../../src/control/contract/caller.ts'
import type { Store } from '../../../src/control/contract/store-port.ts'
import { createEventPlane, recordEvent } from '../../../src/control/plane/events.ts'
import { until } from '../../support/until.ts'
import { forEachEngine } from '../support/engines.ts'
import { codeOf, type MoneyPlane, moneyPlane, seedCaller } from '../support/money-plane.ts'
import { agentCaller, anna } from '../support/task-plane.ts'

const note = (plane: MoneyPlane, type: string, fields: { agentId?: string; taskId?: number } = {}) =>
  plane.context.store.write(() => recordEvent(plane.context, { type, actor: 'test', ...fields }))

/** Collects until `count` events came, or the stream ends. */
async function collect(
  stream: AsyncIterable<ControlEvent>,
  { count, stop }: { readonly count: number; readonly stop: AbortController },
): Promise<readonly ControlEvent[]> {
  const found: ControlEvent[] = []
  for await (const event of stream) {
    found.push(event)
    if (found.length === count) stop.abort()
  }
  return found
}

function follow(
  plane: MoneyPlane,
  { count, after, caller = anna, type }: { count: number; after?: number; caller?: Caller; type?: string },
) {
  const stop = new AbortController()
  const query = { ...(after === undefined ? {} : { after }), ...(type === undefined ? {} : { type }) }
  return { stop, events: collect(plane.events.follow(caller, query, stop.signal), { count, stop }) }
}

/** Counts the events that are read. */
function countingRows(store: Store, counted: { rows: number }): Store {
  const read: Store['read'] = (command) =>
    store.read(function* () {
      const inner = command()
      let step = inner.next([])
      while (!step.done) {
        const rows = yield step.value
        if (step.value[0].startsWith('SELECT * FROM events')) counted.rows += rows.length
        step = inner.next(rows)
      }
      return step.value
    })
  return { ...store, reachable: true, read }
}

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at)

forEachEngine('events', (open) => {
  test('an agent sees its own, a run its task, the shared secret nothing', async () => {
    const plane = await moneyPlane(await open())
    await note(plane, 'one', { agentId: 'a1', taskId: 1 })
    await note(plane, 'two', { agentId: 'b1', taskId: 2 })
    await note(plane, 'three')
    const run: Caller = { kind: 'run', id: 'b1', role: 'sysadmin', taskId: 'TASK-002', runId: 'RUN-001', attempt: 1 }
    const seen = async (caller: Caller, query = {}) =>
      (await plane.events.list(caller, { limit: 50, ...query })).events.map((event) => event.type)
    expect(await codeOf(seen(seedCaller))).toBe('forbidden')
    expect(await seen(agentCaller('a1'))).toEqual(['one'])
    expect(await seen(agentCaller('a1'), { agent_id: 'b1' })).toEqual([])
    expect(await seen(run)).toEqual(['two'])
    expect(await seen(run, { task_id: 'TASK-001' })).toEqual([])
    expect(await seen(anna)).toEqual(['three', 'two', 'one'])
    const own = follow(plane, { count: 2, after: 0, caller: agentCaller('b1') })
    await Bun.sleep(50)
    await note(plane, 'four', { agentId: 'a1' })
    await note(plane, 'five', { agentId: 'b1' })
    expect((await own.events).map((event) => event.type)).toEqual(['two', 'five'])
  })

  test('pages go back with `before` and forward with `after`', async () => {
    const plane = await moneyPlane(await open())
    for (const at of numbers(1, 5)) await note(plane, `t${at}`)
    const ids = ({ events, next }: Awaited<ReturnType<typeof plane.events.list>>) => [events.map((event) => event.id), next]
    expect(ids(await plane.events.list(anna, { limit: 2 }))).toEqual([[5, 4], 4])
    expect(ids(await plane.events.list(anna, { limit: 2, before: 4 }))).toEqual([[3, 2], 2])
    expect(ids(await plane.events.list(anna, { limit: 2, after: 2 }))).toEqual([[3, 4], 4])
    expect(ids(await plane.events.list(anna, { limit: 2, after: 4 }))).toEqual([[5], null])
  })

  test('ids follow the order of commits, and a command that fails leaves neither an event nor a gap that is filled later', async () => {
    const plane = await moneyPlane(await open())
    const { store } = plane.context
    const fails = store.write(function* () {
      yield* recordEvent(plane.context, { type: 'never', actor: 'test' })
      throw new Error('on purpose')
    })
    const three = store.write(function* () {
      for (const type of ['a', 'b', 'c']) yield* recordEvent(plane.context, { type, actor: 'test' })
    })
    await Promise.allSettled([fails, three, note(plane, 'd')])
    const { events } = await plane.events.list(anna, { limit: 50, after: 0 })
    expect(events.map((event) => event.type).join('')).toMatch(/^(abcd|dabc)$/)
    expect(events.map((event) => event.id)).toEqual([...new Set(events.map((event) => event.id))].sort((a, b) => a - b))
  })

  test('followers get every event once and in order, while many write and whenever they come', async () => {
    const plane = await moneyPlane(await open())
    const first = 450
    await plane.context.store.write(function* () {
      for (const _ of numbers(1, first)) yield* recordEvent(plane.context, { type: 't', actor: 'test' })
    })
    const total = first + 300
    const early = numbers(1, 5).map(() => follow(plane, { count: total, after: 0 }))
    const write = (async () => {
      for (let done = 1; done < total; done += 13) await Promise.all(numbers(1, Math.min(13, total - done)).map(() => note(plane, 't')))
    })()
    await Bun.sleep(20)
    const late = numbers(1, 5).map(() => follow(plane, { count: total - 7, after: 7 }))
    await write
    for (const { events } of early) expect((await events).map((event) => event.id)).toEqual(numbers(1, total))
    for (const { events } of late) expect((await events).map((event) => event.id)).toEqual(numbers(8, total))
  })

  test('what is committed while a follower reads comes once', async () => {
    const store = await open()
    const plane = await moneyPlane(store)
    const late = { left: 6 }
    const read: Store['read'] = async (command) => {
      late.left -= 1
      if (late.left >= 0) await note(plane, 't')
      return await store.read(command)
    }
    const events = createEventPlane({ ...plane.context, store: { ...store, reachable: true, read } })
    const stop = new AbortController()
    const found = await collect(events.follow(anna, { after: 0 }, stop.signal), { count: 6, stop })
    expect(found.map((event) => event.id)).toEqual(numbers(1, 6))
  })

  test('many followers share one read of what is new', async () => {
    const store = await open()
    const plane = await moneyPlane(store)
    const counted = { reads: 0 }
    const read: Store['read'] = (command) => {
      counted.reads += 1
      return store.read(command)
    }
    const counting: Store = { ...store, reachable: true, read }
    const events = createEventPlane({ ...plane.context, store: counting })
    const all = numbers(1, 100).map(() => {
      const stop = new AbortController()
      return collect(events.follow(anna, { after: 0 }, stop.signal), { count: 20, stop })
    })
    for (const _ of numbers(1, 20)) await note(plane, 't')
    for (const one of all) expect((await one).map((event) => event.id)).toEqual(numbers(1, 20))
    // Three when each one begins; one for each event would be 2,000.
    expect(counted.reads).toBeLessThan(500)
  })

  test('a slow follower keeps a few events in memory, and still gets all of them', async () => {
    const store = await open()
    const plane = await moneyPlane(store)
    const counted = { rows: 0 }
    const events = createEventPlane({ ...plane.context, store: countingRows(store, counted) })
    const stop = new AbortController()
    const stream = events.follow(anna, { after: 0 }, stop.signal)[Symbol.asyncIterator]()
    await note(plane, 't')
    expect((await stream.next()).value?.id).toBe(1)
    for (let done = 1; done < 1_200; done += 100) await Promise.all(numbers(1, 100).map(() => note(plane, 't')))
    await until(() => counted.rows >= 1_201)
    const live = counted.rows
    const found: number[] = []
    for (const _ of numbers(1, 1_200)) found.push((await stream.next()).value?.id ?? 0)
    expect(found).toEqual(numbers(2, 1_201))
    // Those that did not wait in memory were read again.
    expect(counted.rows - live).toBeGreaterThan(900)
    stop.abort()
    expect((await stream.next()).done).toBe(true)
  }, 120_000)

  test('a stream ends when the token or the key of its reader is revoked', async () => {
    const plane = await moneyPlane(await open())
    await plane.addAgent('a1')
    const made = await plane.access.newOperator(anna, 'ben')
    await plane.access.newOperator(anna, 'cleo')
    const { key_id } = await plane.fleet.newKey(anna, 'a1')
    const stop = new AbortController()
    const begin = (caller: Caller) => plane.events.follow(caller, { after: 0 }, stop.signal)[Symbol.asyncIterator]()
    const [ben, agent] = [begin({ kind: 'operator', id: made.id, name: 'ben' }), begin(agentCaller('a1'))]
    for (const stream of [ben, agent]) expect((await stream.next()).value?.type).toBe('agent.added')
    await plane.access.revokeOperator(anna, made.id)
    await plane.fleet.revokeKey(anna, 'a1', key_id)
    for (const stream of [ben, agent]) while (!(await stream.next()).done);
    expect(stop.signal.aborted).toBe(false)
  })

  test('an id from the future begins at the end', async () => {
    const plane = await moneyPlane(await open())
    await note(plane, 'old')
    const { events, stop } = follow(plane, { count: 1, after: 999 })
    while (!stop.signal.aborted) await Promise.all([note(plane, 'new'), Bun.sleep(20)])
    expect((await events).map((event) => event.type)).toEqual(['new'])
  })
})
