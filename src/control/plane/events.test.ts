import { expect, test } from 'bun:test'
import type { Row, Store } from '../contract/store-port.ts'
import { createEventHub } from './events.ts'

/** Makes a store with events 1 to `last`, whose reads wait until the test answers them. */
function slowStore() {
  const state = { last: 0, reads: 0, listening: 0, tell: () => {} }
  const pending: (() => void)[] = []
  const store: Pick<Store, 'read' | 'listen'> = {
    async read(command) {
      const running = command()
      const [sql, params = []] = running.next([]).value as readonly [string, (readonly number[])?]
      const rows: Row[] = []
      if (sql.includes('MAX(id)')) rows.push({ value: state.last })
      else {
        state.reads += 1
        for (let id = Number(params[0]) + 1; id <= state.last; id += 1) rows.push({ id })
        await new Promise<void>((resolve) => pending.push(resolve))
      }
      const end = running.next(rows)
      return end.value as never
    },
    listen(_, heard) {
      state.listening += 1
      state.tell = heard
      return () => {
        state.listening -= 1
      }
    },
  }
  const answer = async () => {
    pending.shift()?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const hub = createEventHub({ store: store as Store, options: { log: () => {} } as never })
  return { hub, state, answer, waiting: () => pending.length }
}

test('announcements while a read is under way make one more read, and each follower hears each event once, in order', async () => {
  const { hub, state, answer, waiting } = slowStore()
  const heard: number[] = []
  const { from, leave } = await hub.join((row) => void heard.push(Number(row.id)))
  expect(from).toBe(0)
  for (let id = 1; id <= 50; id += 1) {
    state.last = id
    state.tell()
  }
  expect([state.reads, waiting()]).toEqual([1, 1])
  while (waiting() > 0) await answer()
  expect(state.reads).toBe(2)
  expect(heard).toEqual(Array.from({ length: 50 }, (_, at) => at + 1))
  leave()
})

test('the last follower ends the listening, and the next one begins behind what is there', async () => {
  const { hub, state } = slowStore()
  const { leave } = await hub.join(() => {})
  expect(state.listening).toBe(1)
  leave()
  await Promise.resolve()
  expect(state.listening).toBe(0)
  state.last = 7
  expect((await hub.join(() => {})).from).toBe(7)
  expect(state.listening).toBe(1)
})
