import { expect, test } from 'bun:test'
import { readMessage } from '../../kit/wire.ts'
import { createOpenQuestions } from './bridges.ts'

function stage() {
  const state = { done: 0 }
  const open = createOpenQuestions(() => void state.done++)
  const hear = (line: string) => open.answered(readMessage(line))
  return { open, hear, state }
}

test('answers for others, answers too many and lines that are none end nothing', () => {
  const { open, hear, state } = stage()
  hear('a\tearly')
  open.asked('a')
  open.asked('b')
  open.last()
  for (const line of ['c\tno', 'nonsense', 'a\tyes', 'a\ttwice']) hear(line)
  expect(state.done).toBe(0)
  hear('b\tyes')
  expect(state.done).toBe(1)
})

test('it is over only once no more will be asked', () => {
  const { open, hear, state } = stage()
  open.asked('a')
  hear('a\tyes')
  expect(state.done).toBe(0)
  open.last()
  expect(state.done).toBe(1)
})

test('who asked nothing is done at the end of input', () => {
  const { open, state } = stage()
  open.last()
  expect(state.done).toBe(1)
})
