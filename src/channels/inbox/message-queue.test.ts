import { expect, test } from 'bun:test'
import { createMessageQueue } from '../serve-channels.ts'
import type { InboundMessage } from './channel-api.ts'

/** A queue whose work in one conversation ends when the test says so. */
function stage(limits: { readonly most?: number; readonly mostChars?: number } = {}) {
  const log: string[] = []
  const taken: string[] = []
  const answers: string[] = []
  const gates = new Map<string | undefined, PromiseWithResolvers<void>>()
  const queue = createMessageQueue({
    log: (level, event, fields) => void log.push(`${level} ${event} ${fields?.beginning}`),
    async take({ text, conversation }) {
      taken.push(text)
      await gates.get(conversation)?.promise
    },
    ...limits,
  })
  const put = (text: string, conversation?: string) => {
    const message: InboundMessage = { text, channel: text, from: 'test', answer: async (words) => void answers.push(`${text}: ${words}`) }
    queue.put(conversation === undefined ? message : { ...message, conversation })
  }
  const hold = (conversation?: string) => void gates.set(conversation, Promise.withResolvers())
  const go = (conversation?: string) => {
    gates.get(conversation)?.resolve()
    gates.delete(conversation)
  }
  return { queue, log, taken, answers, put, hold, go }
}

const settle = () => Bun.sleep(1)

test('after close nobody is taken: who waits and who is still heard is told, and close waits for those at hand', async () => {
  const { queue, log, taken, answers, put, hold, go } = stage()
  hold()
  hold('other')
  put('a')
  put('b')
  put('x', 'other')
  await settle()
  const closed = { now: false }
  const closing = queue.close().then(() => Object.assign(closed, { now: true }))
  put('c')
  await settle()
  expect(taken).toEqual(['a', 'x'])
  expect(answers.map((text) => text.slice(0, 17))).toEqual(['b: [not answered:', 'c: [not answered:'])
  expect(log).toEqual(['warn message not answered b', 'warn message not answered c'])
  go()
  await settle()
  expect(closed.now).toBe(false)
  go('other')
  await closing
  expect(taken).toEqual(['a', 'x'])
})

test('beyond what may wait in a conversation a message is answered so, and other conversations are not concerned', async () => {
  const { taken, answers, put, hold, go } = stage({ most: 2, mostChars: 10 })
  hold()
  for (const text of ['1', '2', '3', '4']) put(text)
  put('elsewhere', 'other')
  await settle()
  expect(taken).toEqual(['1', 'elsewhere'])
  expect(answers).toEqual(['4: [not answered: 2 messages wait here already; send it again later]'])
  go()
  await settle()
  expect(taken).toEqual(['1', 'elsewhere', '2', '3'])
  hold()
  for (const text of ['5', '66666', 'too long']) put(text)
  await settle()
  expect(answers[1]).toBe('too long: [not answered: 1 message waits here already; send it again later]')
})

test('those of one conversation are taken in order, one after the other; a slow conversation delays no other', async () => {
  const { taken, put, hold, go } = stage()
  hold()
  put('1')
  put('a', 'other')
  put('2')
  put('b', 'other')
  await settle()
  expect(taken).toEqual(['1', 'a', 'b'])
  go()
  await settle()
  expect(taken).toEqual(['1', 'a', 'b', '2'])
})
