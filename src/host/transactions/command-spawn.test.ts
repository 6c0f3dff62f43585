import { expect, test } from 'bun:test'
import type { Loopback } from '../../sandbox/contract.ts'
import { policyWith } from '../../security/gate.fixture.ts'
import type { SpawnPlan } from '../../tools/process.ts'
import { createCommandSpawn } from './command-spawn.ts'

test('one network is opened however many ask at once, commands with hosts stay out of it, and a dead one is opened again', async () => {
  const opened: { isOpen: boolean }[] = []
  const plans: SpawnPlan[] = []
  const confinement = {
    mode: async () => ({ confined: true, transaction: true }),
    warm() {},
    spawn: async (plan: SpawnPlan) => {
      plans.push(plan)
      return { ok: true, code: 0, leftBehind: false } as const
    },
    async openLoopback(): Promise<Loopback> {
      const state = { isOpen: true }
      const key = `loopback ${opened.push(state)}`
      await Bun.sleep(1)
      return { key, words: [], isOpen: () => state.isOpen, close: () => Object.assign(state, { isOpen: false }) }
    },
  }
  const policy = policyWith({ workspace: import.meta.dir })
  const setup = { context: { env: {} }, paths: { home: '/home' } } as unknown as Parameters<typeof createCommandSpawn>[0]['setup']
  const commands = createCommandSpawn({ setup, policy, conversationId: 'c', confinement, sweep: (plan, run) => run(plan) })
  const run = async (network: readonly string[] = []) => {
    await commands.spawn({ argv: ['true'], cwd: '/', env: {}, signal: new AbortController().signal, network, onOutput() {} })
    return plans.at(-1)?.loopback?.key
  }
  expect(await run()).toBeUndefined()
  expect(await Promise.all([commands.shareNetwork(), commands.shareNetwork()])).toEqual([undefined, undefined])
  expect([opened.length, await run(), await run(['example.org'])]).toEqual([1, 'loopback 1', undefined])
  Object.assign(opened[0] ?? {}, { isOpen: false })
  expect(await run()).toBeUndefined()
  await commands.shareNetwork()
  expect([opened.length, await run()]).toEqual([2, 'loopback 2'])
  commands.close()
  expect(await run()).toBeUndefined()
})
