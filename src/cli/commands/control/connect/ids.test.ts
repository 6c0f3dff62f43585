import { expect, test } from 'bun:test'
import { idOf, nameOf } from './ids.ts'

test.each(['', 'TASK', 'TASK-', 'RUN-001', 'TASK-1x', '-1', '1.5', '../1', 'TASK-0000000000000000000001x', '\u001b[2J'])(
  '%p is no task',
  (text) => {
    expect(() => idOf('task', text)).toThrow('is no id of a task; one looks like TASK-001. See: braidclaw control task list')
    expect(() => idOf('task', text)).not.toThrow('\u001b')
  },
)

test.each([
  ['TASK-001', 'TASK-001'],
  ['task-7', 'TASK-007'],
  ['12345', 'TASK-12345'],
  ['TASK-0042', 'TASK-042'],
  ['0', 'TASK-000'],
])('%s is %s', (text, id) => expect(idOf('task', text)).toBe(id))

test('runs and approvals', () => {
  expect([idOf('run', '3'), idOf('approval', 'appr-42')]).toEqual(['RUN-003', 'APPR-042'])
})

test.each(['', '-a', '.a', 'a b', 'a/b', 'ä', 'a'.repeat(65), 'a\u202e'])('%p is no name', (text) => {
  expect(() => nameOf('agent', text)).toThrow('agent ')
})

test('a name', () => expect(nameOf('agent', 'db-admin.2_x')).toBe('db-admin.2_x'))
