import { expect, test } from 'bun:test'
import { createCommitQueue } from './commit-queue.ts'

class FullDisk extends Error {}
class Locked extends Error {}

/** Uses a list instead of a database: transactions and savepoints restore it when they throw. */
type Stage = { readonly onBegin?: () => void; readonly waits?: number[]; readonly turns?: number; readonly together?: boolean }

function stage(onCommit: () => void = () => {}, { onBegin = () => {}, waits = [], ...options }: Stage = {}) {
  const kept: string[] = []
  const log: string[] = []
  const apart = { count: 0 }
  const undone = <T>(body: () => T): T => {
    const before = kept.length
    try {
      return body()
    } catch (error) {
      kept.splice(before)
      throw error
    }
  }
  const queue = createCommitQueue({
    transaction: (body) =>
      undone(() => {
        onBegin()
        log.push('begin')
        const result = body()
        onCommit()
        log.push('commit')
        return result
      }),
    separate: (body) => {
      apart.count += 1
      return undone(body)
    },
    endsGroup: (error) => error instanceof FullDisk,
    isLocked: (error) => error instanceof Locked,
    lockWait: () => () => waits.shift(),
    ...options,
  })
  const add = (name: string, error?: Error) =>
    queue.add(() => {
      kept.push(name)
      if (error) throw error
      return name
    })
  return { add, kept, log, apart }
}

test('what is asked for in one turn of the loop is one transaction, in the order in which it was asked', async () => {
  const { add, kept, log } = stage()
  const asked = ['a', 'b', 'c'].map((name) => add(name))
  expect(log).toEqual([])
  expect(await Promise.all(asked)).toEqual(['a', 'b', 'c'])
  expect(kept).toEqual(['a', 'b', 'c'])
  expect(log).toEqual(['begin', 'commit'])
  await add('d')
  expect(log).toEqual(['begin', 'commit', 'begin', 'commit'])
})

test('nobody is told before the transaction has ended', async () => {
  const { add, log } = stage()
  await add('a').then(() => log.push('told'))
  expect(log).toEqual(['begin', 'commit', 'told'])
})

test('a step that fails leaves nothing behind and fails alone', async () => {
  const { add, kept } = stage()
  const results = await Promise.allSettled([add('a'), add('b', new Error('bad b')), add('c')])
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(kept).toEqual(['a', 'c'])
})

test('what ends the group ends it for all, and so does a commit that fails', async () => {
  const full = stage()
  const failed: unknown = await Promise.allSettled([full.add('a'), full.add('b', new FullDisk('full')), full.add('c')])
  expect(failed).toEqual([1, 2, 3].map(() => ({ status: 'rejected', reason: new FullDisk('full') })))
  expect(full.kept).toEqual([])
  const broken = stage(() => {
    throw new FullDisk('at the commit')
  })
  const refused: unknown = await Promise.allSettled([broken.add('a'), broken.add('b')])
  expect(refused).toEqual([1, 2].map(() => ({ status: 'rejected', reason: new FullDisk('at the commit') })))
  expect(broken.kept).toEqual([])
})

test('a group is bounded, so that other processes get their turn', async () => {
  const { add, log } = stage()
  await Promise.all(Array.from({ length: 150 }, (_, at) => add(`${at}`)))
  expect(log.filter((line) => line === 'begin')).toHaveLength(3)
})

test('while another process writes it is tried again, what is asked for meanwhile joins, and the event loop goes on', async () => {
  const held = { tries: 0 }
  const onBegin = () => {
    held.tries += 1
    if (held.tries <= 3) throw new Locked('another process')
  }
  const { add, kept, log } = stage(() => {}, { onBegin, waits: [5, 5, 5] })
  const first = add('a')
  await Bun.sleep(2)
  expect([held.tries, kept]).toEqual([1, []])
  expect(await Promise.all([first, add('b')])).toEqual(['a', 'b'])
  expect([kept, log, held.tries]).toEqual([['a', 'b'], ['begin', 'commit'], 4])
})

test('who has waited long enough hears that it is locked, and the next one waits anew', async () => {
  const held = { tries: 0 }
  const onBegin = () => {
    held.tries += 1
    if (held.tries <= 3) throw new Locked('another process')
  }
  const waits = [1]
  const { add, kept } = stage(() => {}, { onBegin, waits })
  expect(add('a')).rejects.toBeInstanceOf(Locked)
  await Bun.sleep(20)
  waits.push(1, 1)
  expect(await add('b')).toBe('b')
  expect(kept).toEqual(['b'])
})

test('steps run together need no savepoints, unless one of them fails: then all run again, and only that one fails', async () => {
  const { add, kept, log, apart } = stage(undefined, { together: true })
  await Promise.all([add('a'), add('b')])
  expect([log, apart.count]).toEqual([['begin', 'commit'], 0])
  const results = await Promise.allSettled([add('c'), add('d', new Error('bad d')), add('e')])
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(kept).toEqual(['a', 'b', 'c', 'e'])
  expect([log.slice(2), apart.count]).toEqual([['begin', 'begin', 'commit'], 3])
})

test('a group waits for some turns of the loop while more steps come', async () => {
  const { add, log } = stage(undefined, { turns: 3, together: true })
  const first = add('a')
  const second = new Promise((resolve) => setImmediate(() => resolve(add('b'))))
  await Promise.all([first, second])
  expect(log).toEqual(['begin', 'commit'])
})
