import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { place } from '../../../test/support/host.ts'
import { openMemory } from '../../memory/memory.ts'
import { policyOf } from '../setup/effective-policy.ts'
import { createToolRuntime } from './tool-executor.ts'

async function stage(config = '') {
  const at = place(config)
  const setup = at.setup()
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
