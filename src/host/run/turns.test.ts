import { expect, test } from 'bun:test'
import { createTurnQueue } from './turns.ts'

const free = new AbortController().signal

test('beyond the limit a turn waits, and each end lets in the one that came first', async () => {
  const queue = createTurnQueue()
  const order: string[] = []
  const enter = (name: string) =>
    queue.enter(2, free).then((leave) => {
      order.push(name)
      return leave
    })
  const turns = ['a', 'b', 'c', 'd'].map(enter)
  await Bun.sleep(1)
  expect(order).toEqual(['a', 'b'])
  const [a, b] = [await turns[0], await turns[1]]
  b?.()
  b?.()
  await Bun.sleep(1)
  expect(order).toEqual(['a', 'b', 'c'])
  a?.()
  await Bun.sleep(1)
  expect(order).toEqual(['a', 'b', 'c', 'd'])
})

test('who gives up while waiting gets no turn and takes no place', async () => {
  const queue = createTurnQueue()
  const first = await queue.enter(1, free)
  const tired = new AbortController()
  const [given, next] = [queue.enter(1, tired.signal), queue.enter(1, free)]
  tired.abort()
  expect(await given).toBeUndefined()
  first?.()
  expect(await next).toBeFunction()
  expect(await queue.enter(1, AbortSignal.abort())).toBeUndefined()
})
