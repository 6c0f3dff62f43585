import { expect, test } from 'bun:test'
import { createSlotIndex } from './slot-index.ts'

test('ids that nobody names any more do not pile up, and those that somebody names stay', () => {
  const now = new Map([
    [0, 'first'],
    [1, ''],
  ])
  const index = createSlotIndex<{ readonly place: number }>(({ place }, { id }) => now.get(place) === id)
  const [faithful, fickle] = [{ place: 0 }, { place: 1 }]
  index.add({ type: 'act', id: 'first' }, faithful)
  const ids = Array.from({ length: 10_000 }, (_, at) => `call_${at}`)
  for (const id of ids) {
    now.set(1, id)
    index.add({ type: 'act', id }, fickle)
  }
  expect(ids.filter((id) => index.find({ type: 'act', id })?.length).length).toBeLessThan(50)
  expect(index.find({ type: 'act', id: 'call_9999' })).toEqual([fickle])
  expect(index.find({ type: 'act', id: 'first' })).toEqual([faithful])
})
