import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createMemoryStage, type MemoryStage } from '../memory/fixture.ts'
import { createChannelStore } from '../memory/recovery/channel-store.ts'
import type { Log } from '../runtime/port.ts'
import { createTroubles, keepListening } from './serve-channels.ts'

let stage: MemoryStage
beforeEach(() => {
  stage = createMemoryStage()
})
afterEach(() => stage.remove())

function fixture() {
  const lines: string[] = []
  const log: Log = (_, event) => void lines.push(event)
  const store = createChannelStore(stage.memory.store)
  return { lines, log, store, troubles: createTroubles(store, log) }
}

test('a channel that fails is started again and again, with longer rests up to five minutes, and the log says it once', async () => {
  const { lines, log, store, troubles } = fixture()
  const waits: number[] = []
  let starts = 0
  const start = async () => {
    starts += 1
    if (starts < 7) throw new Error('refused')
  }
  const signal = new AbortController().signal
  await keepListening({ name: 'telegram', start, troubles, log, signal, rest: async (ms) => void waits.push(ms) })
  expect(waits).toEqual([30_000, 60_000, 120_000, 240_000, 300_000, 300_000])
  expect(lines).toEqual(['channel failed'])
  expect(store.troubles()).toMatchObject([{ channel: 'telegram', state: 'failed', why: 'refused' }])
  troubles.set('telegram', undefined)
  expect([store.troubles(), troubles.list(), lines]).toEqual([[], [], ['channel failed', 'channel works again']])
})

test('a channel that fails while the process stops is not started again', async () => {
  const { log, troubles, lines } = fixture()
  const stop = new AbortController()
  const start = async () => {
    stop.abort()
    throw new Error('closed')
  }
  await keepListening({ name: 'discord', start, troubles, log, signal: stop.signal, rest: () => Promise.reject(new Error('no rest')) })
  expect(lines).toEqual([])
})

test('other processes see the troubles of living processes only, and of each its own', () => {
  const { store, troubles } = fixture()
  store.setTrouble('discord', '999999999@1', { state: 'failed', why: 'old', since: 1 })
  expect(store.troubles()).toEqual([])
  store.setTrouble('discord', '1@0', { state: 'failed', why: 'of another', since: 1 })
  expect(store.troubles().map(({ why }) => why)).toEqual(['of another'])
  troubles.set('discord', { state: 'out of reach', why: 'ours' })
  troubles.set('telegram', { state: 'out of reach', why: 'ours too' })
  expect(new Set(store.troubles().map(({ why }) => why))).toEqual(new Set(['of another', 'ours', 'ours too']))
  troubles.set('discord', undefined)
  expect(store.troubles().map(({ why }) => why)).toEqual(['of another', 'ours too'])
})
