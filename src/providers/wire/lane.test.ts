import { describe, expect, test } from 'bun:test'
import { ProviderFailure } from '../../runtime/port.ts'
import { createLane, type Pass } from './lane.ts'

/** A lane whose clock the test moves. */
function stage() {
  const clock = { now: 0, timers: new Map<() => void, number>() }
  const lane = createLane({
    now: () => clock.now,
    after(ms, then) {
      clock.timers.set(then, clock.now + ms)
      return () => void clock.timers.delete(then)
    },
  })
  const waits: object[] = []
  const entered: string[] = []
  const passes = new Map<string, Pass>()
  const failed = new Map<string, unknown>()
  async function enter(
    name: string,
    { most = 1, signal = new AbortController().signal, ticket = lane.ticket(), patienceMs = 30_000 } = {},
  ) {
    const wait = lane.enter({ provider: 'p', ticket, most, signal, patienceMs, onWait: (why) => waits.push(why) })
    await wait.then(
      (pass) => {
        entered.push(name)
        passes.set(name, pass)
      },
      (error: unknown) => failed.set(name, error),
    )
  }
  async function pass(ms: number) {
    clock.now += ms
    for (const [then, at] of clock.timers) if (at <= clock.now && clock.timers.delete(then)) then()
    await settled()
  }
  const settled = () => Bun.sleep(0)
  return { lane, waits, entered, passes, failed, enter, pass, settled, timers: clock.timers }
}

describe('how many at once', () => {
  test('the others wait in the order of coming, and are told how many are before them', async () => {
    const { enter, entered, passes, waits, settled } = stage()
    for (const name of ['a', 'b', 'c', 'd']) void enter(name, { most: 2 })
    await settled()
    expect(entered).toEqual(['a', 'b'])
    expect(waits).toEqual([
      { ahead: 0, holdOffMs: 0 },
      { ahead: 1, holdOffMs: 0 },
    ])
    passes.get('b')?.leave()
    passes.get('b')?.leave()
    await settled()
    expect(entered).toEqual(['a', 'b', 'c'])
  })

  test('who is cancelled while it waits leaves at once, and nobody loses a place', async () => {
    const { enter, entered, passes, failed, settled } = stage()
    const stop = new AbortController()
    void enter('a')
    void enter('b', { signal: stop.signal })
    void enter('c')
    stop.abort('stop')
    await settled()
    expect([...failed]).toEqual([['b', 'stop']])
    passes.get('a')?.leave()
    await settled()
    expect(entered).toEqual(['a', 'c'])
    const gone = AbortSignal.abort('before')
    await enter('d', { signal: gone })
    expect(failed.get('d')).toBe('before')
  })

  test('who tries again goes before those who came later', async () => {
    const { enter, entered, passes, lane, settled } = stage()
    const early = lane.ticket()
    void enter('running')
    void enter('later')
    void enter('again', { ticket: early })
    await settled()
    passes.get('running')?.leave()
    await settled()
    expect(entered).toEqual(['running', 'again'])
  })
})

describe('after the far side asked for patience', () => {
  test('nobody goes before the time, then one tries alone, and the others follow when it is answered', async () => {
    const { enter, entered, passes, lane, pass, waits } = stage()
    lane.holdOff(2000)
    for (const name of ['a', 'b', 'c']) void enter(name, { most: 8 })
    await pass(1999)
    expect([entered, waits[0]]).toEqual([[], { ahead: 0, holdOffMs: 2000 }])
    await pass(1)
    expect(entered).toEqual(['a'])
    passes.get('a')?.began()
    await pass(0)
    expect(entered).toEqual(['a', 'b', 'c'])
  })

  test('one that fails for another reason lets the next one try; one that is refused again prolongs it for all', async () => {
    const { enter, entered, passes, lane, pass } = stage()
    lane.holdOff(1000)
    for (const name of ['a', 'b', 'c']) void enter(name, { most: 8 })
    await pass(1000)
    passes.get('a')?.leave()
    await pass(0)
    expect(entered).toEqual(['a', 'b'])
    lane.holdOff(5000)
    passes.get('b')?.leave()
    await pass(4999)
    expect(entered).toEqual(['a', 'b'])
    await pass(1)
    expect(entered).toEqual(['a', 'b', 'c'])
  })

  test('a shorter wait does not end a longer one early', async () => {
    const { enter, entered, lane, pass } = stage()
    lane.holdOff(5000)
    lane.holdOff(10)
    void enter('a')
    await pass(4000)
    expect(entered).toEqual([])
  })

  test('whoever would have to wait too long is told at once, also one that waits already', async () => {
    const { enter, failed, lane, settled } = stage()
    void enter('running')
    void enter('waiting')
    await settled()
    lane.holdOff(3_600_000)
    await enter('late')
    for (const name of ['waiting', 'late']) {
      const error = failed.get(name)
      expect(error).toBeInstanceOf(ProviderFailure)
      expect(error).toMatchObject({
        code: 'rate_limit',
        detail: { retryAfterMs: 3_600_000 },
        message: expect.stringContaining('another 3600 s'),
      })
    }
  })

  test('cancelling works during it, and no timer is left for nobody', async () => {
    const { enter, failed, lane, settled, timers } = stage()
    const stop = new AbortController()
    lane.holdOff(2000)
    void enter('a', { signal: stop.signal })
    stop.abort('stop')
    await settled()
    expect([failed.get('a'), timers.size]).toEqual(['stop', 0])
  })
})
