import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createMemoryStage, type MemoryStage } from '../memory/fixture.ts'
import { createChannelStore } from '../memory/recovery/channel-store.ts'
import { createTroubleReport, keepListening } from './serve-channels.ts'

let stage: MemoryStage
beforeEach(() => {
  stage = createMemoryStage()
})
afterEach(() => stage.remove())

function fixture() {
  const lines: string[] = []
  const store = createChannelStore(stage.memory.store)
  return { lines, store, report: createTroubleReport(store, (_, event) => void lines.push(event)) }
}

const never = new AbortController().signal

test('a channel that fails is started again and again, with longer rests up to five minutes', async () => {
  const [waits, said]: [number[], [string, number][]] = [[], []]
  const start = async () => {
    if (waits.length < 6) throw new Error('refused')
  }
  await keepListening({ start, failed: (...why) => void said.push(why), signal: never, rest: async (ms) => void waits.push(ms) })
  expect(waits).toEqual([30_000, 60_000, 120_000, 240_000, 300_000, 300_000])
  expect(said).toEqual(waits.map((ms) => ['refused', ms]))
})

test('a channel that fails while the process stops is not started again, and that is not a failure', async () => {
  const stop = new AbortController()
  const start = async () => {
    stop.abort()
    throw new Error('closed')
  }
  const failed = () => expect.unreachable()
  await keepListening({ start, failed, signal: stop.signal, rest: failed })
})

test('a trouble is news once, since it began, and gone when the channel works', () => {
  const { lines, store, report } = fixture()
  expect(report('telegram', { state: 'out of reach', why: 'a' })).toBe(true)
  const [{ since } = { since: 0 }] = store.troubles()
  expect(['a', 'a', 'b'].map((why) => report('telegram', { state: 'failed', why }))).toEqual([true, false, true])
  expect(store.troubles()).toEqual([{ channel: 'telegram', state: 'failed', why: 'b', since }])
  report('telegram')
  report('telegram')
  expect([store.troubles(), lines]).toEqual([[], ['channel works again']])
})

test('other processes see the troubles of living processes only, and of each its own', () => {
  const { store, report } = fixture()
  store.setTrouble('discord', '999999999@1', { state: 'failed', why: 'old' })
  expect(store.troubles()).toEqual([])
  store.setTrouble('discord', '1@0', { state: 'failed', why: 'of another' })
  report('discord', { state: 'out of reach', why: 'ours' })
  report('telegram', { state: 'out of reach', why: 'ours too' })
  expect(new Set(store.troubles().map(({ why }) => why))).toEqual(new Set(['of another', 'ours', 'ours too']))
  report('discord')
  expect(new Set(store.troubles().map(({ why }) => why))).toEqual(new Set(['of another', 'ours too']))
})
