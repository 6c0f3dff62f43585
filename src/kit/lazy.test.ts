import { expect, test } from 'bun:test'
import { lazy } from './lazy.ts'

test('it is made once, however many ask, and not before', async () => {
  let count = 0
  const thing = lazy(async () => ++count)
  expect([thing.current(), await thing.settled(), count]).toEqual([undefined, undefined, 0])
  expect(await Promise.all([thing.get(), thing.get()])).toEqual([1, 1])
  expect([thing.current(), await thing.settled(), await thing.get()]).toEqual([1, 1, 1])
})

test('all who wait for a failure are told, and the next who asks has it tried again', async () => {
  let count = 0
  const thing = lazy(async () => {
    if (++count === 1) throw new Error('not yet')
    return count
  })
  const asked = [thing.get(), thing.get()]
  expect(await thing.settled()).toBeUndefined()
  for (const each of await Promise.allSettled(asked)) expect(each).toMatchObject({ status: 'rejected', reason: { message: 'not yet' } })
  expect([thing.current(), await thing.get(), thing.current()]).toEqual([undefined, 2, 2])
})
