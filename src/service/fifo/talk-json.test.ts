import { describe, expect, test } from 'bun:test'
import { createTalkStage, say, sendWhole } from './fixture.ts'

describe('an answer of JSON', () => {
  const json = '{"content":[{"text":"one\n\ntwo \\"quoted\\"\n\n"}]}'

  test('ends where it is JSON: not at a blank line in a string, wherever it is torn', () => {
    for (let cut = 1; cut < json.length + 2; cut += 1) {
      const talkStage = createTalkStage()
      const { asking } = sendWhole(talkStage, 'q\n')
      const whole = `${json}\n\n`
      talkStage.answer.write(say(whole.slice(0, cut)))
      expect(typeof asking.poll()).toBe('number')
      talkStage.answer.write(say(whole.slice(cut)))
      expect(asking.poll()).toEqual({ ok: true, answer: json })
    }
  })

  test('that never becomes JSON is all there is once nothing more comes: after a blank line, or when its writer has left', () => {
    const cases = [
      { text: '{"content":"cut off\n\n', writing: true, ends: true },
      { text: '{"content":"cut off', writing: false, ends: true },
      { text: '{"content":"cut off', writing: true, ends: false },
      { text: '\n', writing: false, ends: false },
    ]
    const asked = cases.map(({ text, writing }) => {
      const talkStage = createTalkStage({ writing })
      const { asking } = sendWhole(talkStage, 'q\n')
      talkStage.answer.write(say(text))
      expect(typeof asking.poll()).toBe('number')
      return asking
    })
    Bun.sleepSync(1010)
    for (const [at, asking] of asked.entries()) {
      const found = asking.poll()
      expect(typeof found === 'number' ? 'waits' : found).toEqual(
        cases[at]?.ends ? { ok: true, answer: cases[at].text.trimEnd() } : 'waits',
      )
    }
  })

  test('is no text that only begins with a bracket: that ends at its first blank line', () => {
    const talkStage = createTalkStage()
    const { asking } = sendWhole(talkStage, 'q\n')
    talkStage.answer.write(say('[info] "done\n\n'))
    expect(asking.poll()).toEqual({ ok: true, answer: '[info] "done' })
  })
})
