import { expect, test } from 'bun:test'
import type { Ending } from '../../runtime/event.ts'
import { replyOf } from '../answer-message.ts'

const ending = (code: Ending['code'], message = 'why'): Ending => ({ stop: 'error', code, message })
const open: readonly string[] = []

test('an approval names the command for people, and the history does not have it', () => {
  const told = replyOf({ ending: ending('approval_needed', 'shell: x'), result: 'I asked.', open: ['run_1/call_1', 'run_1/call_2'] })
  expect(told.text).toBe(
    'I asked.\n\n[approval needed: shell: x. On the machine: braidclaw approvals allow run_1/call_1; braidclaw approvals allow run_1/call_2; then ask again]',
  )
  expect(told.remembered).toBe('I asked.\n\n[approval needed: shell: x]')
  expect(replyOf({ ending: ending('approval_needed'), open }).text).toBe('[approval needed: why]')
})

test('a question that is still open is named whatever the turn ended with', () => {
  const way = '. On the machine: braidclaw approvals allow run_1/call_1; then ask again]'
  const replied = replyOf({ ending: ending('answered', ''), result: 'I went on.', open: ['run_1/call_1'] })
  expect(replied).toEqual({ text: `I went on.\n\n[approval needed${way}`, remembered: 'I went on.' })
  expect(replyOf({ ending: ending('denied'), open: ['run_1/call_1'] }).text).toBe(`[denied: why${way}`)
})

test('whatever the model says, what was refused stands beside it', () => {
  for (const [code, word] of [
    ['denied', 'denied'],
    ['limit', 'limit reached'],
    ['budget', 'budget spent'],
    ['checks_failed', 'checks failed'],
    ['estop', 'stopped'],
    ['cancelled', 'cancelled'],
    ['stalled', 'failed'],
    ['error', 'failed'],
    ['integrity', 'the records were altered, nothing further is done'],
  ] as const) {
    expect(replyOf({ ending: ending(code), result: 'Done!\n', open })).toEqual({
      text: `Done!\n\n[${word}: why]`,
      remembered: `Done!\n\n[${word}: why]`,
    })
    expect(replyOf({ ending: ending(code), open })).toEqual({ text: `[${word}: why]` })
  }
})

test('the two apologies, and an answer of nothing, are not remembered', () => {
  expect(replyOf({ ending: ending('timeout'), result: 'half', open })).toEqual({ text: "I'm temporarily unavailable." })
  expect(replyOf({ ending: ending('provider'), open })).toEqual({ text: 'Temporarily unavailable' })
  expect(replyOf({ ending: ending('answered'), result: ' \n', open })).toEqual({ text: '' })
  expect(replyOf({ ending: ending('provider'), isEmpty: true, open })).toEqual({ text: '' })
})

test('a run that its own deadline ended names that limit, and is no silent model', () => {
  const late = ending('timeout', 'the run took longer than limits.max_run_seconds (2 s)')
  expect(replyOf({ ending: late, open })).toEqual({ text: '[limit reached: the run took longer than limits.max_run_seconds (2 s)]' })
})

test('an answer is itself', () => {
  expect(replyOf({ ending: ending('answered'), result: ' Hello\n', open })).toEqual({ text: 'Hello', remembered: 'Hello' })
})
