import { expect, test } from 'bun:test'
import type { Caller } from '../contract/caller.ts'
import { createCounters } from './counters.ts'

const agent = (id: string): Caller => ({ kind: 'agent', id, role: 'sysadmin' })
const operator: Caller = { kind: 'operator', id: 'op1', name: 'anna' }

test('one agent may keep 1,024 requests waiting, all agents 7,168, and operators wait all the same', () => {
  const { began } = createCounters()
  const first = began('poll', agent('a0'))
  for (let at = 1; at < 1_024; at += 1) began(at % 2 === 0 ? 'poll' : 'stream', agent('a0'))
  const run: Caller = { kind: 'run', id: 'a0', role: 'sysadmin', taskId: 'TASK-001', runId: 'RUN-001', attempt: 1 }
  expect(() => began('stream', run)).toThrow('1024 requests of a0 wait already')
  first()
  first()
  began('stream', run)
  expect(() => began('poll', agent('a0'))).toThrow('1024 requests of a0 wait already')
  for (let at = 1_024; at < 7_168; at += 1) began('poll', agent(`a${at % 500}b`))
  expect(() => began('poll', agent('late'))).toThrow('7168 requests of all agents wait already')
  expect(() => began('stream', operator)).not.toThrow()
})
