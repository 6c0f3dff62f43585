/** Agent turns of MCP clients: how many run at once, what they may spend, and how they end. */

import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { place, says, waiting } from '../../../test/support/host.ts'
import { until } from '../../../test/support/until.ts'
import type { Host } from '../../host/api.ts'
import { type ModelCall, modelCallProvider } from '../../providers/model-call.ts'
import { createHomeOffer } from './home-offer.ts'

const all = { call: true, agent: true, read: true, approve: true }

function offerOf(host: Host, model: ModelCall, may = all, turns = { running: 0 }) {
  return createHomeOffer({ host, options: { provider: modelCallProvider(model) }, name: 'test', may, sees: host.hasConversation }, turns)
}

const plain = (signal = new AbortController().signal) => ({ signal, canAsk: false, progress: () => {} })

test('an agent that calls its own home ends at the eighth turn, in whatever process the others run', async () => {
  using at = place()
  const host = await at.host()
  const { model, asked, go } = waiting()
  // Each has its own count, as in a process of its own.
  const running = Array.from({ length: 8 }, async (_, at) => {
    await until(() => asked() >= at)
    return offerOf(host, model).call('agent_turn', { message: 'go' }, plain())
  })
  await until(() => asked() === 8)
  const ninth = await offerOf(host, says('x')).call('agent_turn', { message: 'go' }, plain()).catch(String)
  go()
  for (const step of await Promise.all(running)) expect(step).toMatchObject({ isError: false })
  expect(ninth).toContain('8 agent turns')
  expect(await offerOf(host, says('again')).call('agent_turn', { message: 'go' }, plain())).toMatchObject({ isError: false })
  await host.close()
})

test('turns that begin at the same moment are counted too, and one that cannot begin frees its place', async () => {
  using at = place()
  const host = await at.host()
  const { model, asked, go } = waiting()
  const offer = offerOf(host, model)
  const missing = () => offer.call('agent_turn', { message: 'go', conversation_id: 'conversation_0' }, plain()).catch(String)
  for (let tries = 0; tries < 9; tries++) expect(await missing()).toContain('does not exist')
  const calls = Array.from({ length: 20 }, () => offer.call('agent_turn', { message: 'go' }, plain()).catch(() => 'refused'))
  await until(() => asked() > 0)
  go()
  expect((await Promise.all(calls)).filter((step) => step === 'refused').length).toBeGreaterThanOrEqual(12)
  await host.close()
})

test('a turn ends with its budget, and with the client that cancels it', async () => {
  using at = place()
  const host = await at.host()
  expect(await offerOf(host, says('x')).call('agent_turn', { message: 'go', max_tokens: 1 }, plain())).toMatchObject({
    text: expect.stringContaining('"ending":"budget"'),
    isError: true,
  })
  const { model, asked } = waiting()
  const leaving = new AbortController()
  const step = offerOf(host, model).call('agent_turn', { message: 'go' }, plain(leaving.signal))
  await until(() => asked() === 1)
  leaving.abort()
  expect(await step).toMatchObject({ text: expect.stringContaining('"ending":"cancelled"'), isError: true })
  await host.close()
})

test('a client without a right is not offered what it needs', async () => {
  using at = place()
  const host = await at.host()
  const names = async (may: typeof all) => (await offerOf(host, says('x'), may).tools()).map(({ name }) => name)
  expect(await names({ ...all, call: false })).toEqual(['agent_turn', 'receipts_list', 'receipts_verify'])
  expect(await names({ ...all, agent: false, read: false })).not.toContain('agent_turn')
  const none = offerOf(host, says('x'), { call: false, agent: false, read: false, approve: false })
  for (const name of ['time', 'agent_turn', 'receipts_verify']) await expect(none.call(name, {}, plain())).rejects.toThrow('not offered')
  await offerOf(host, says('x')).call('agent_turn', { message: 'go' }, plain())
  const sessions = 'braidclaw://sessions/{id}'
  expect(await none.complete?.(sessions, '')).toEqual([])
  expect(await offerOf(host, says('x')).complete?.(sessions, '')).toHaveLength(1)
  expect([none.resources, await none.read?.('braidclaw://runs'), await none.prompts?.()]).toEqual([[], undefined, []])
  await host.close()
})

test('skills of the user are prompts, those of a folder that is not trusted are not', async () => {
  using at = place()
  for (const [folder, name] of [
    [join(at.home, 'skills'), 'mine'],
    [join(at.cwd, '.agents/skills'), 'theirs'],
  ] as const) {
    mkdirSync(join(folder, name), { recursive: true })
    writeFileSync(join(folder, name, 'SKILL.md'), `---\nname: ${name}\ndescription: Does it.\n---\nText of ${name}.\n`)
  }
  const host = await at.host()
  expect(await offerOf(host, says('x')).prompts?.()).toEqual([{ name: 'mine', description: 'Does it.', text: 'Text of mine.' }])
  await host.close()
})
