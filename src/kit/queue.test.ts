import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createQueue } from './queue.ts'

/** Tells whether the promise is settled after all pending work has run. */
async function isSettled(wait: Promise<void>): Promise<boolean> {
  let settled = false
  void wait.then(() => {
    settled = true
  })
  await Bun.sleep(0)
  return settled
}

test('a full queue makes the producer wait until one item is taken', async () => {
  const queue = createQueue<number>(2)
  expect(queue.push(1)).toBeUndefined()
  const wait = queue.push(2) ?? Promise.resolve()
  expect(await isSettled(wait)).toBe(false)
  const items = queue.items()
  expect((await items.next()).value).toBe(1)
  expect(await isSettled(wait)).toBe(true)
})

test('several producers that wait all go on when the queue is closed, and what was queued is still taken', async () => {
  const queue = createQueue<number>(1)
  const waits = [queue.push(1), queue.push(2), queue.push(3)]
  queue.close()
  await Promise.all(waits)
  expect(await Array.fromAsync(queue.items())).toEqual([1, 2, 3])
})

test('after closing an item is dropped, and nobody waits for room', async () => {
  const queue = createQueue<number>(1)
  queue.close()
  expect(queue.push(1)).toBeUndefined()
  expect(await Array.fromAsync(queue.items())).toEqual([])
})

test('a consumer that waits for an item hears of the next one, and of the end', async () => {
  const queue = createQueue<string>(10)
  const items = queue.items()
  const first = items.next()
  await Bun.sleep(0)
  void queue.push('late')
  expect((await first).value).toBe('late')
  const second = items.next()
  await Bun.sleep(0)
  queue.close()
  expect((await second).done).toBe(true)
})

test('whatever the capacity and the pace, every item arrives once and in order, and no more than fit are ever queued', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 5 }), fc.array(fc.boolean(), { maxLength: 40 }), async (capacity, pauses) => {
      const queue = createQueue<number | undefined>(capacity)
      const [taken, state] = [[] as (number | undefined)[], { queued: 0, most: 0 }]
      const produce = async () => {
        for (const at of pauses.keys()) {
          state.queued += 1
          state.most = Math.max(state.most, state.queued)
          await queue.push(at === 0 ? undefined : at)
        }
        queue.close()
      }
      const done = produce()
      for await (const item of queue.items()) {
        state.queued -= 1
        taken.push(item)
        if (pauses[taken.length]) await Promise.resolve()
      }
      await done
      expect(taken).toEqual([...pauses.keys()].map((at) => (at === 0 ? undefined : at)))
      expect(state.most).toBeLessThanOrEqual(capacity + 1)
    }),
  )
})
