import { afterEach, beforeEach, expect, test } from 'bun:test'
import { until } from '../../../test/support/until.ts'
import { deleteConversation } from '../../memory/conversations/delete-conversations.ts'
import { createMemoryStage, type MemoryStage } from '../../memory/fixture.ts'
import { createChannelStore } from '../../memory/recovery/channel-store.ts'
import type { Log } from '../../runtime/port.ts'
import { createDelivery } from './delivery.ts'
import type { SendOptions, SendResult } from './send-pieces.ts'

let stage: MemoryStage
beforeEach(() => {
  stage = createMemoryStage()
})
afterEach(() => stage.remove())

const good: SendResult = { ok: true }
const passing: SendResult = { ok: false, message: 'no answer' }
const final: SendResult = { ok: false, message: 'blocked', isFinal: true }

/** Answers with the results in their order, and then well. A rest ends when the test says so, or by a new answer. */
function fixture(...results: SendResult[]) {
  const store = createChannelStore(stage.memory.store)
  const [sent, lines, rests]: [(readonly [string, string, SendOptions])[], string[], number[]] = [[], [], []]
  const stop = new AbortController()
  const state: { over: () => void } = { over: () => {} }
  const log: Log = (level, event) => void lines.push(`${level} ${event}`)
  const delivery = createDelivery({
    channel: 'telegram',
    store,
    signal: stop.signal,
    log,
    async send(address, text, options = {}) {
      sent.push([address, text, options])
      return results.shift() ?? good
    },
    sleep: (ms, signal) => {
      rests.push(ms)
      return new Promise((resolve) => {
        state.over = resolve
        signal.addEventListener('abort', () => resolve())
      })
    },
  })
  const texts = () => sent.map(([, text]) => text)
  return { store, sent, texts, lines, rests, stop, delivery, restOver: () => state.over() }
}

const dead = '999999999@1'
const left = { channel: 'telegram', address: '5', conversationId: 'c', replyTo: null, isQuestion: false, owner: dead }

test('what is not delivered stays on disk and is tried again with longer rests; what is delivered is forgotten', async () => {
  const { store, texts, rests, delivery, restOver, lines } = fixture(passing, passing, passing)
  await delivery.deliver({ address: '5', text: 'one' })
  expect(store.unsent()).toMatchObject([{ address: '5', text: 'one', why: 'no answer', failed: 0 }])
  for (const tried of [2, 3]) {
    restOver()
    await until(() => rests.length === tried)
  }
  restOver()
  await until(() => store.unsent().length === 0)
  expect([texts(), rests, lines[0]]).toEqual([['one', 'one', 'one', 'one'], [5_000, 10_000, 20_000], 'warn answer waits'])
})

test('an answer that comes in the moment in which the last one is found delivered is sent too', async () => {
  const { store, texts, delivery } = fixture()
  const look = store.oldest
  const state = { isFirst: true }
  store.oldest = (...of) => {
    const found = look(...of)
    if (!found && state.isFirst) queueMicrotask(() => void delivery.deliver({ address: '5', text: 'two' }))
    if (!found) state.isFirst = false
    return found
  }
  await delivery.deliver({ address: '5', text: 'one' })
  await until(() => store.unsent().length === 0 && texts().length === 2)
  expect(texts()).toEqual(['one', 'two'])
})

test('what a dead process left on another channel waits for a process that serves that channel', () => {
  const { store, delivery } = fixture()
  store.keep({ ...left, text: 'elsewhere', channel: 'discord' })
  store.keep({ ...left, text: 'here' })
  delivery.resume()
  expect(store.adopt('discord', 'another')).toEqual(['5'])
})

test('an address that cannot be reached holds up no other', async () => {
  const { delivery, texts } = fixture(passing)
  await delivery.deliver({ address: '5', text: 'one' })
  await delivery.deliver({ address: '6', text: 'elsewhere' })
  expect(texts()).toEqual(['one', 'elsewhere'])
})

test('a new answer ends the rest, and goes after the one that waits', async () => {
  const { texts, delivery, store } = fixture(passing)
  await delivery.deliver({ address: '5', text: 'one' })
  await delivery.deliver({ address: '5', text: 'two' })
  expect([texts(), store.unsent()]).toEqual([['one', 'one', 'two'], []])
})

test('an empty answer goes out as words, because no service takes an empty message', async () => {
  const { texts, delivery } = fixture()
  await delivery.deliver({ address: '5', text: '' })
  expect(texts()).toEqual(['(no answer)'])
})

test('what the service refuses for good is kept without its text, as never delivered, and the next answer goes out', async () => {
  const { store, texts, delivery, lines } = fixture(final)
  await delivery.deliver({ address: '5', text: 'secret' })
  await delivery.deliver({ address: '5', text: 'next' })
  expect(store.unsent()).toMatchObject([{ address: '5', text: '', why: 'blocked', failed: 1 }])
  expect([texts(), lines]).toEqual([['secret', 'next'], ['error answer not delivered']])
})

test('the next process delivers what a dead one has left, from the first piece that was not sent; what a living one sends stays its own', async () => {
  const { store, sent, delivery } = fixture()
  const seq = store.keep({ ...left, text: 'left' })
  store.setProgress(seq, { sent: 2 })
  store.keep({ ...left, text: 'of another channel', channel: 'discord' })
  store.keep({ ...left, text: 'of a living process', owner: '1@0', address: '6' })
  delivery.resume()
  await until(() => store.unsent().length === 2)
  expect(sent).toMatchObject([['5', 'left', { skip: 2, key: expect.stringMatching(/^[0-9a-z]+-[0-9a-z]+$/) }]])
})

test('a question of a dead process is not asked: its person learns that it came too late', async () => {
  const { store, texts, delivery } = fixture()
  store.keep({ ...left, text: 'Reply "yes 1abcd"', isQuestion: true })
  delivery.resume()
  await until(() => store.unsent().length === 0)
  expect(texts()).toEqual([expect.stringContaining('The call did not run; ask me again')])
})

test('a question that was answered or expired meanwhile is withdrawn', async () => {
  const { store, texts, delivery, rests } = fixture(passing)
  const closed = Promise.withResolvers<void>()
  await delivery.deliver({ address: '5', text: 'May I?', closed: closed.promise })
  closed.resolve()
  await until(() => store.unsent().length === 0)
  await delivery.deliver({ address: '5', text: 'denied' })
  expect([texts(), rests]).toEqual([['May I?', 'denied'], [5_000]])
})

test('a stop leaves what waits to the next start', async () => {
  const { store, delivery, stop, lines } = fixture(passing)
  await delivery.deliver({ address: '5', text: 'one' })
  stop.abort()
  await delivery.deliver({ address: '5', text: 'two' })
  expect(store.unsent().map(({ text, failed }) => [text, failed])).toEqual([
    ['one', 0],
    ['two', 0],
  ])
  expect(lines).toEqual(['warn answer waits'])
})

test('of too many answers the oldest fail, of too many failed ones the oldest are forgotten, and a deleted conversation takes its own along', () => {
  const { store } = fixture()
  stage.memory.transaction(() => {
    for (let n = 0; n < 1_105; n += 1) store.keep({ ...left, text: `${n}`, conversationId: `c${n}` })
  })
  const states = store.unsent()
  expect([states.filter(({ failed }) => failed === 0).length, states.filter(({ failed }) => failed === 1).length]).toEqual([1_000, 100])
  expect(states.find(({ failed }) => failed === 0)?.text).toBe('105')
  deleteConversation(stage.memory.store, 'c200', () => {})
  expect(store.unsent().map(({ text }) => text)).not.toContain('200')
})
