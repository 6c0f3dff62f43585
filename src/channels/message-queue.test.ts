import { expect, test } from 'bun:test'
import { createQueue } from '../runtime/event-queue.ts'
import type { Heard } from './inbound-message.ts'
import { createDesk } from './message-queue.ts'

/** A desk whose work ends when the test says so, and a channel. */
function stage(most?: number) {
  const log: string[] = []
  const taken: string[] = []
  const answers: string[] = []
  const hold = { open: true, gate: Promise.withResolvers<void>() }
  const desk = createDesk({
    log: (level, event, fields) => void log.push(`${level} ${event} ${fields?.channel ?? fields?.why}`),
    async take({ text }) {
      taken.push(text)
      if (!hold.open) await hold.gate.promise
    },
    ...(most ? { most } : {}),
  })
  const heard = (text: string): Heard => ({
    text,
    channel: text,
    from: 'test',
    answer: async (words) => void answers.push(`${text}: ${words}`),
  })
  return { desk, log, taken, answers, hold, heard }
}

const settle = () => Bun.sleep(1)

test('after close nobody is taken: who waits and who is still heard is told, and close waits for the one at hand', async () => {
  const { desk, log, taken, answers, hold, heard } = stage()
  hold.open = false
  const channel = createQueue<Heard>(100)
  const listening = desk.listen(channel.items())
  for (const text of ['a', 'b']) channel.push(heard(text))
  await settle()
  const closed = { now: false }
  const closing = desk.close().then(() => Object.assign(closed, { now: true }))
  channel.push(heard('c'))
  await settle()
  expect(taken).toEqual(['a'])
  expect(answers.map((text) => text.slice(0, 17))).toEqual(['b: [not answered:', 'c: [not answered:'])
  expect(log).toEqual(['warn message not answered b', 'warn message not answered c'])
  expect(closed.now).toBe(false)
  hold.gate.resolve()
  await closing
  channel.close()
  await listening
})

test('all channels are taken one after the other, in the order in which they came', async () => {
  const { desk, taken, hold, heard } = stage()
  hold.open = false
  const [one, two] = [createQueue<Heard>(100), createQueue<Heard>(100)]
  const listening = [desk.listen(one.items()), desk.listen(two.items())]
  for (const [channel, text] of [
    [one, '1'],
    [two, '2'],
    [one, '3'],
    [two, '4'],
  ] as const) {
    channel.push(heard(text))
    await settle()
  }
  expect(taken).toEqual(['1'])
  hold.open = true
  hold.gate.resolve()
  await settle()
  expect(taken).toEqual(['1', '2', '3', '4'])
  one.close()
  two.close()
  await Promise.all(listening)
})

test('with too many waiting the channel is not listened to until there is room', async () => {
  const { desk, taken, hold, heard } = stage(2)
  hold.open = false
  const read: string[] = []
  async function* endless(): AsyncGenerator<Heard> {
    for (const text of ['1', '2', '3', '4', '5']) {
      read.push(text)
      yield heard(text)
    }
  }
  const listening = desk.listen(endless())
  await settle()
  expect([taken, read]).toEqual([['1'], ['1', '2', '3']])
  hold.open = true
  hold.gate.resolve()
  await listening
  await settle()
  expect(taken).toEqual(['1', '2', '3', '4', '5'])
})

test('a channel that fails is said, and the others go on', async () => {
  const { desk, log, taken, heard } = stage()
  await desk.listen(
    (async function* (): AsyncGenerator<Heard> {
      yield* []
      throw new Error('the line is dead')
    })(),
  )
  await desk.listen(
    (async function* () {
      yield heard('alive')
    })(),
  )
  await settle()
  expect([log, taken]).toEqual([['error channel failed the line is dead'], ['alive']])
})
