import { expect, test } from 'bun:test'
import type { Proposal } from '../../runtime/event.ts'
import type { Decision, RunIdentity } from '../../runtime/port.ts'
import { createHomePoll } from '../events/home-poll.ts'
import { createPendingApprovals } from './pending-approvals.ts'

const run = (runId: string): RunIdentity => ({ runId, conversationId: `of ${runId}`, turnId: 't', provider: 'p', model: 'm', channel: 'c' })
const proposal: Proposal = {
  call: { id: 'a', name: 'file_write', input: {} },
  judgement: { verdict: 'ask', risk: 'medium', rule: 'r', reason: 'r', plan: 'p', summary: 's', writes: [] },
}

function stage() {
  const elsewhere = new Map<string, Decision>()
  const looks = { count: 0 }
  const pending = createPendingApprovals((gateId) => {
    looks.count += 1
    const answer = elsewhere.get(gateId.replace('/a', ''))
    if (answer?.by === 'broken disk') throw new Error('disk gone')
    return answer
  }, createHomePoll(5))
  const heard: string[] = []
  const ask = (name: string) =>
    pending.watch(run(name), {
      gateId: `${name}/a`,
      proposal,
      async answer({ allow, by }) {
        heard.push(`${name} ${allow ? 'yes' : 'no'} by ${by}`)
        return undefined
      },
      fail: (error) => heard.push(`${name} ${String(error)}`),
    })
  return { pending, elsewhere, looks, heard, ask }
}

test('an unknown question cannot be answered, nor one that was answered elsewhere a moment ago', async () => {
  const { pending, elsewhere, heard, ask } = stage()
  expect(await pending.decide('r1/a', { allow: true, by: 'ann' })).toBe('approval')
  ask('r1')
  elsewhere.set('r1', { allow: false, by: 'operator' })
  expect(await pending.decide('r1/a', { allow: true, by: 'ann' })).toBe('approval')
  await Bun.sleep(30)
  expect(heard).toEqual(['r1 no by operator'])
})

test('a record that cannot be read fails that question, and the others go on', async () => {
  const { elsewhere, heard, ask } = stage()
  ask('r1')
  ask('r2')
  elsewhere.set('r1', { allow: true, by: 'broken disk' })
  elsewhere.set('r2', { allow: true, by: 'operator' })
  await Bun.sleep(30)
  expect(heard).toEqual(['r1 Error: disk gone', 'r2 yes by operator'])
})

test('an answer of this process is there at once, and nobody looks when nobody waits', async () => {
  const { pending, looks, heard, ask } = stage()
  const end = ask('r1')
  expect(pending.open()).toEqual([{ id: 'r1/a', conversationId: 'of r1', proposal }])
  expect(await pending.decide('r1/a', { allow: true, by: 'ann' })).toBeUndefined()
  expect(heard).toEqual(['r1 yes by ann'])
  end()
  const { count } = looks
  await Bun.sleep(30)
  expect([looks.count, pending.open()]).toEqual([count, []])
})
