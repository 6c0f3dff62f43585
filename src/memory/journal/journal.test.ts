import { afterEach, beforeEach, expect, test } from 'bun:test'
import { clearConversations } from '../conversations/delete-conversations.ts'
import { acting, callOf, createRecordStage, judgement, refusing, runOf, started } from '../fixture.ts'

let stage: ReturnType<typeof createRecordStage>
beforeEach(() => {
  stage = createRecordStage()
})
afterEach(() => stage.memoryStage.remove())

const labels = (conversation: string) => stage.memoryStage.memory.labels.of(conversation)

test('what calls began to read is known to later runs of that conversation, and of no other', () => {
  const { external, intent, denied } = stage.recorder()
  external(runOf(1), started('hi'))
  denied(runOf(1), { ...refusing(callOf('x')), judgement: { ...judgement, labels: ['reads_untrusted'] } })
  expect(labels('conversation-1')).toEqual([])
  intent(runOf(1), { ...acting(callOf('a')), judgement: { ...judgement, labels: ['reads_private', 'sends'] } })
  intent(runOf(2), { ...acting(callOf('b')), judgement: { ...judgement, labels: ['reads_private', 'reads_untrusted'] } })
  intent(runOf(3, { conversationId: 'conversation-2' }), { ...acting(callOf('c')), judgement: { ...judgement, labels: ['reads_private'] } })
  expect([labels('conversation-1'), labels('conversation-2')]).toEqual([['reads_private', 'reads_untrusted'], ['reads_private']])
})

test('a cleared memory has read nothing', () => {
  const { intent } = stage.recorder()
  intent(runOf(1), { ...acting(callOf('a')), judgement: { ...judgement, labels: ['reads_private'] } })
  clearConversations(stage.memoryStage.memory, { yes: true, leave: () => {} })
  expect(labels('conversation-1')).toEqual([])
})
