import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type BridgeAnswer, createDuplex } from './duplex.ts'
import { createPipe, createTalkStage, say, sendWhole } from './fixture.ts'

describe('a question nobody takes', () => {
  test('leaves nothing behind, and the next one is whole', () => {
    const talkStage = createTalkStage()
    expect(talkStage.talk.ask('one\n', 0).poll()).toEqual({ ok: false, why: 'unread' })
    expect(talkStage.request.text()).toBe('')
    const { asking, taken } = sendWhole(talkStage, 'two\n')
    expect(taken).toBe('two\n')
    talkStage.answer.write(say('2\n\n'))
    expect(asking.poll()).toEqual({ ok: true, answer: '2' })
  })

  test('shows one byte at a time, which is taken back before each look', () => {
    const talkStage = createTalkStage()
    const asking = talkStage.talk.ask('one\n', 1e9)
    for (let poll = 0; poll < 5; poll += 1) {
      asking.poll()
      expect(talkStage.request.text()).toBe('o')
    }
    asking.cancel()
    expect(talkStage.request.text()).toBe('')
  })
})

describe('an answer that is not to this question', () => {
  test('is thrown away when it was there before', () => {
    const talkStage = createTalkStage()
    talkStage.answer.write(say('stale\n\nhalf'))
    const { asking } = sendWhole(talkStage, 'q\n')
    expect(typeof asking.poll()).toBe('number')
    talkStage.answer.write(say('fresh\n\n'))
    expect(asking.poll()).toEqual({ ok: true, answer: 'fresh' })
  })

  test('is thrown away when it comes late, even right before the question is taken', () => {
    const talkStage = createTalkStage()
    const first = sendWhole(talkStage, 'one\n')
    first.asking.cancel()
    const asking = talkStage.talk.ask('two\n', 1e9)
    asking.poll()
    talkStage.answer.write(say('1\n\n'))
    talkStage.request.take(1)
    asking.poll()
    expect(typeof asking.poll()).toBe('number')
    talkStage.request.take(100)
    talkStage.answer.write(say('2\n\n'))
    expect(asking.poll()).toEqual({ ok: true, answer: '2' })
  })

  test('is thrown away when it was meant for our predecessor', () => {
    const talkStage = createTalkStage()
    talkStage.request.write(say('old question, half read\n\n'))
    const asking = talkStage.talk.ask('q\n', 1e9)
    asking.poll()
    expect(talkStage.request.text()).toBe('\n\n')
    talkStage.request.take(1)
    asking.poll()
    expect(talkStage.request.text()).toBe('\n')
    talkStage.request.take(1)
    asking.poll()
    expect(talkStage.request.text()).toBe('q')
  })

  test('is what else comes of an answer with a blank line in it', () => {
    const talkStage = createTalkStage()
    const one = sendWhole(talkStage, 'one\n')
    talkStage.answer.write(say('a\n\nb\n\n'))
    expect(one.asking.poll()).toEqual({ ok: true, answer: 'a\n\nb' })
    const asking = talkStage.talk.ask('two\n', 1e9)
    talkStage.answer.write(say('c\n\nd\n\n'))
    asking.poll()
    talkStage.request.take(1)
    expect(typeof asking.poll()).toBe('number')
    talkStage.request.take(100)
    talkStage.answer.write(say('2\n\n'))
    expect(asking.poll()).toEqual({ ok: true, answer: '2' })
  })
})

test('a late answer larger than its FIFO does not keep the bridge from the next question', () => {
  const talkStage = createTalkStage()
  sendWhole(talkStage, 'one\n').asking.cancel()
  const late = Buffer.alloc(200_000, 'x')
  const asking = talkStage.talk.ask('two\n', 1e9)
  let written = 0
  for (let poll = 0; poll < 10; poll += 1) {
    written += talkStage.answer.write(late.subarray(written))
    asking.poll()
  }
  expect(written).toBe(200_000)
})

test('an answer to a question of which a part is still here is none', () => {
  const talkStage = createTalkStage()
  const question = `${'x'.repeat(100_000)}\n`
  const asking = talkStage.talk.ask(question, 1e9)
  asking.poll()
  let taken = talkStage.request.take(1).length
  asking.poll()
  talkStage.answer.write(say('hasty\n\n'))
  expect(typeof asking.poll()).toBe('number')
  for (let poll = 0; poll < 3; poll += 1) {
    taken += talkStage.request.take(1e6).length
    asking.poll()
  }
  expect(taken).toBe(question.length)
  talkStage.answer.write(say('right\n\n'))
  expect(asking.poll()).toEqual({ ok: true, answer: 'right' })
})

describe('a question that was read in part', () => {
  test('is ended before the next one: its reader may still hold the beginning', () => {
    const talkStage = createTalkStage()
    const asking = talkStage.talk.ask('{"one":1}\n\n', 1e9)
    asking.poll()
    talkStage.request.take(1)
    asking.poll()
    talkStage.request.take(3)
    asking.cancel()
    expect(talkStage.request.text()).toBe('')
    const { taken } = sendWhole(talkStage, 'two\n\n')
    expect(taken).toBe('\n\ntwo\n\n')
  })

  test('has its end taken back too when nobody comes for it, and offered again', () => {
    const talkStage = createTalkStage()
    const asking = talkStage.talk.ask('one\n', 1e9)
    asking.poll()
    talkStage.request.take(1)
    asking.cancel()
    talkStage.talk.ask('two\n', 0).poll()
    expect(talkStage.request.text()).toBe('')
    const three = talkStage.talk.ask('three\n', 1e9)
    three.poll()
    expect(Buffer.from(talkStage.request.take(1)).toString()).toBe('\n')
    three.cancel()
    talkStage.talk.ask('four\n', 1e9).poll()
    expect(talkStage.request.text()).toBe('\n')
  })

  test('by a bridge that answers without reading the last newline leaves none for the next', () => {
    const talkStage = createTalkStage()
    const asking = talkStage.talk.ask('one\n\n', 1e9)
    asking.poll()
    talkStage.request.take(1)
    asking.poll()
    talkStage.request.take(3)
    talkStage.answer.write(say('1\n\n'))
    expect(asking.poll()).toEqual({ ok: true, answer: '1' })
    expect(sendWhole(talkStage, 'two\n\n').taken).toBe('two\n\n')
  })
})

test('a question that was taken and not answered in time says so', () => {
  const talkStage = createTalkStage()
  const asking = talkStage.talk.ask('one\n', 20)
  asking.poll()
  talkStage.request.take(1)
  asking.poll()
  talkStage.request.take(100)
  Bun.sleepSync(25)
  expect(asking.poll()).toEqual({ ok: false, why: 'timeout' })
})

test('an answer longer than allowed is none, and its rest is nobody else’s', () => {
  const talkStage = createTalkStage()
  const one = sendWhole(talkStage, 'one\n')
  talkStage.answer.write(say('x'.repeat(3000)))
  expect(one.asking.poll()).toEqual({ ok: false, why: 'too_long' })
  const asking = talkStage.talk.ask('two\n', 1e9)
  talkStage.answer.write(say('xxx\n\n'))
  asking.poll()
  talkStage.request.take(1)
  asking.poll()
  talkStage.request.take(100)
  talkStage.answer.write(say('2\n\n'))
  expect(asking.poll()).toEqual({ ok: true, answer: '2' })
})

test('an empty answer is one', () => {
  const talkStage = createTalkStage()
  const { asking } = sendWhole(talkStage, 'one\n')
  talkStage.answer.write(say('\n\n'))
  expect(asking.poll()).toEqual({ ok: true, answer: '' })
})

/**
 * Simulates bridges that read a question, answer and read on, as shells do: one byte at a time, or everything available. They are slow, get
 * stopped, die at any point and are replaced; the agent gives up at any point. Each step belongs to a bridge or to the agent, in any order.
 */
test('no answer is ever taken for that of another question', () => {
  const often: Step[] = ['look', 'read', 'answer', 'write'].flatMap((step) => Array(10).fill(step))
  const step = fc.constantFrom<Step[]>(...often, 'cancel', 'die')
  const steps = fc.array(step, { minLength: 200, maxLength: 600, size: 'max' })
  let answered = 0
  fc.assert(
    fc.property(steps, fc.integer({ min: 0, max: 4 }), fc.constantFrom(1, 3, 4096), (steps, length, atOnce) => {
      answered += play(steps, length, atOnce)
    }),
    { numRuns: 500 },
  )
  // Makes sure that the simulation answers questions at all.
  expect(answered).toBeGreaterThan(300)
})

type Step = 'look' | 'read' | 'answer' | 'write' | 'cancel' | 'die'

/** Returns how many questions were answered. */
function play(steps: readonly Step[], length: number, atOnce: number): number {
  const [request, answer] = [createPipe(), createPipe(64)]
  const talk = createDuplex([request, answer], 1000)
  let number = 0
  let answered = 0
  const question = (): string => `q${number}${'.'.repeat(length)}${number}\n`
  let asking = talk.ask(question(), 1e9)
  let bridge: { heard: string; toSay: string } = { heard: '', toSay: '' }

  const settle = (found: BridgeAnswer): void => {
    if (!found.ok) throw new Error(`ended as ${found.why}`)
    // The whole question, or its end: the previous bridge may have died with the beginning.
    expect(`answer to ${question().trim()}`).toEndWith(found.answer.replace('answer to ', ''))
    expect(found.answer).toMatch(/\d$/)
    answered += 1
  }
  const ask = (): void => {
    number += 1
    asking = talk.ask(question(), 1e9)
  }
  for (const step of steps) {
    if (step === 'look') {
      const found = asking.poll()
      if (typeof found !== 'number') {
        settle(found)
        ask()
      }
    } else if (step === 'cancel') {
      asking.cancel()
      ask()
    } else if (step === 'die') bridge = { heard: '', toSay: '' }
    else if (step === 'write') {
      // A part of the answer: it takes several writes.
      const count = answer.write(Buffer.from(bridge.toSay.slice(0, 5)))
      bridge.toSay = bridge.toSay.slice(count)
    } else if (bridge.toSay !== '') continue
    else if (step === 'read' && !bridge.heard.includes('\n')) bridge.heard += Buffer.from(request.take(atOnce)).toString()
    else if (step === 'answer' && bridge.heard.includes('\n')) {
      const [first = '', ...rest] = bridge.heard.split('\n')
      bridge = { heard: rest.join('\n'), toSay: first === '' ? '' : `answer to ${first}\n\n` }
    }
  }
  return answered
}
