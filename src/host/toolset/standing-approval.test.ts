import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { place } from '../../../test/support/host.ts'
import { openMemory } from '../../memory/memory.ts'
import { alwaysKey } from '../../security/always.ts'
import type { ChannelProfile } from '../access/channel-profile.ts'
import { narrowSetup } from '../access/channel-profile.ts'
import { policyOf } from '../setup/effective-policy.ts'
import { createToolRuntime } from './tool-executor.ts'

async function stage(config = '', access?: ChannelProfile) {
  const at = place(config)
  const setup = narrowSetup(at.setup(), access)
  const opened = openMemory({ path: join(at.home, 'memory.sqlite'), log: () => {}, now: Date.now })
  if (!opened.ok) throw new Error('no memory')
  const { memory } = opened
  const policy = policyOf(setup.config, setup.paths, setup.context.env)
  const runtime = await createToolRuntime({ setup, policy, memory, conversationId: 'c' })
  const proposal = async (url: string, method = 'GET') => {
    const call = { id: url, name: 'http', input: { url, method } }
    return { call, judgement: await runtime.judge(call) }
  }
  const close = () => {
    runtime.close()
    memory.close()
    at[Symbol.dispose]()
  }
  return {
    runtime,
    memory,
    proposal,
    isStanding: async (url: string, method?: string) => runtime.isStanding(await proposal(url, method)),
    [Symbol.dispose]: close,
  }
}

test('an "always" for a request covers its host alone, reading and sending apart', async () => {
  using on = await stage()
  const { runtime, proposal, isStanding } = on
  expect(runtime.allowAlways(await proposal('https://a.example/page'))).toBe(
    'allowed from now on in this conversation: http read from a.example',
  )
  expect(await isStanding('https://a.example/other?q=1')).toBe(true)
  for (const url of ['https://b.example/', 'https://a.example.evil.net/', 'https://x.a.example/'])
    expect([url, await isStanding(url)]).toEqual([url, false])
  expect(await isStanding('https://a.example/page', 'POST')).toBe(false)
})

test('once something private was read, an "always" for a host does not cover what is sent there', async () => {
  using on = await stage()
  const { runtime, memory, proposal, isStanding } = on
  runtime.allowAlways(await proposal('https://a.example/'))
  expect(await isStanding('https://a.example/?q=1')).toBe(true)
  memory.transaction(() => memory.labels.keep('other', ['reads_private']))
  expect(await isStanding('https://a.example/?q=1')).toBe(true)
  memory.transaction(() => memory.labels.keep('c', ['reads_private']))
  expect(await isStanding('https://a.example/?q=1')).toBe(false)
})

test('an "always" for a file tool does not answer a question of the rules of the project, nor can one be given for it', async () => {
  using on = await stage()
  const { runtime } = on
  const call = { id: 'c1', name: 'file_write', input: { path: 'a.md', content: 'x' } }
  const proposal = { call, judgement: await runtime.judge(call) }
  const ruled = { call, judgement: { ...proposal.judgement, verdict: 'ask', rule: 'rule.structure.a' } } as const
  expect(runtime.allowAlways(ruled)).toBeUndefined()
  expect(runtime.allowAlways(proposal)).toContain('file_write')
  expect([runtime.isStanding(proposal), runtime.isStanding(ruled)]).toEqual([true, false])
})

test('a rule that the operator made for a command does not hold for people on a channel', async () => {
  const config = '[security]\nask = "before"\nallow_commands = ["mkdir"]\n'
  const people: ChannelProfile = { channel: 'discord', profile: 'chat', users: ['1'], approvers: ['1'], memory: 'all', level: 'supervised' }
  for (const [access, verdict] of [
    [undefined, 'allow'],
    [people, 'ask'],
  ] as const) {
    using on = await stage(config, access)
    on.memory.approvals.addRule({ tool: 'shell', scope: alwaysKey({ executable: '/usr/bin/mkdir', subcommand: '' }), by: 'terminal' })
    const judged = await on.runtime.judge({ id: 'm', name: 'shell', input: { command: 'mkdir x' } })
    expect([access?.channel, judged.verdict]).toEqual([access?.channel, verdict])
  }
})
