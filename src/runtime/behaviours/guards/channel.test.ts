import { expect, test } from 'bun:test'
import { collect, type Script, stage } from '../../../../test/support/agent.ts'
import type { ChangeReview } from '../../changes.ts'

const review: ChangeReview = { digest: 'd1'.repeat(32), verdict: 'apply', rule: 'r', reason: 'r', summary: 's', count: 1 }
const chat = { name: 'discord', tools: ['time', 'shell'], readonly: true } as const

async function run(name: string, own: Partial<Script> = {}) {
  const { agent, acted, log, requests } = stage({
    replies: [{ calls: [{ id: 'a', name }] }, { text: 'over' }],
    limits: { channel: chat },
    changes: { apply: async (_, __, ran) => ran, drop: () => {} },
    ...own,
  })
  await collect(agent, 'go')
  const last = requests[1]?.messages.at(-1)
  return { acted, log, told: last?.role === 'tool' ? last.content : undefined, code: agent.ending()?.code }
}

test('a tool that the channel does not have is refused, although the gate allows it', async () => {
  const { acted, told, code } = await run('file_read')
  expect([acted, code]).toEqual([[], 'denied'])
  expect(told).toBe('Denied by channel.tools: the channel "discord" does not have the tool file_read')
})

test('a tool that it has runs', async () => {
  expect(await run('time')).toMatchObject({ acted: ['a'], code: 'answered' })
})

test('a channel that only reads refuses what writes, and drops what a command changed on its view', async () => {
  expect(await run('time', { verdicts: { a: { writes: ['/w/x'] } } })).toMatchObject({ acted: [], code: 'denied' })
  const { acted, log } = await run('shell', { act: async () => ({ status: 'allowed', output: '', changes: review }) })
  expect([acted, log]).toEqual([['a'], expect.arrayContaining(['dropped a by channel.readonly'])])
  expect(log).not.toContain('apply a')
})

test('a channel without limits refuses nothing', async () => {
  expect(await run('file_write', { limits: {}, verdicts: { a: { writes: ['/w/x'] } } })).toMatchObject({ acted: ['a'] })
})
