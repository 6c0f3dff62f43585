/** What is recorded, asked over HTTP: the tools, the memory, the receipts, the rules and the stop; and what is taken back. */

import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { gateway, tokenOf } from '../support/gateway.ts'
import { call, home, scripted } from '../support/turns.ts'

test('tools, memory, receipts and status are what the commands print', async () => {
  using at = home()
  const { env } = scripted(at, [call('time', {}), { text: 'It is late, says the xylophone.' }])
  await using server = await gateway(at, [], { env })
  const { body } = await server.ask('/chat', { message: 'what time is it?' })
  expect((await server.ask('/tools')).body).toEqual(JSON.parse((await at.run(['tool', 'list', '--json'])).stdout))
  const found = await server.ask('/memory/search?q=xylophone&limit=3')
  expect(found.body.results).toMatchObject([
    { conversation_id: body.conversation_id, role: 'assistant', snippet: expect.stringContaining('xylophone'), score: expect.any(Number) },
  ])
  const { receipts } = (await server.ask('/receipts?limit=10')).body
  expect(receipts).toEqual(JSON.parse((await at.run(['receipt', 'list', '--json'])).stdout))
  expect((await server.ask('/receipts?after=1')).body.receipts).toEqual([])
  const { body: status } = await server.ask('/status')
  expect(status.receipts).toEqual({ count: 1, head: receipts[0].receipt_hash })
  expect((await server.ask('/receipts/verify', { deep: true })).body).toMatchObject({ ok: true, count: 1, problems: [] })
})

test('the stop over HTTP is for admins, reaches a running turn, and is lifted again', async () => {
  using at = home()
  const { env } = scripted(at, [call('time', {}), { text: 'No.' }, call('time', {}), { text: 'Yes.' }])
  await using server = await gateway(at, [], { env })
  const bot = await tokenOf(at, 'bot', '--scope', 'read', '--scope', 'chat', '--scope', 'approve')
  expect((await server.ask('/estop', {}, { headers: { authorization: `Bearer ${bot}` } })).status).toBe(403)
  expect((await server.ask('/estop', { reason: 'wrong branch' })).body).toMatchObject({ stopped: true, reason: 'wrong branch' })
  expect((await server.ask('/status')).body.estop).toMatchObject({ stopped: true, reason: 'wrong branch' })
  const stopped = await server.ask('/chat', { message: 'time?' })
  expect([stopped.status, stopped.body.ending.code]).toEqual([200, 'estop'])
  expect((await server.ask('/estop', { clear: true })).body).toEqual({ stopped: false, reason: null })
  expect((await server.ask('/chat', { message: 'time?' })).body.ending.code).not.toBe('estop')
})

test('what a turn changed is shown as a difference and taken back exactly', async () => {
  using at = home()
  const { env } = scripted(at, [call('file_write', { path: 'new.txt', content: 'hello\n' }), { text: 'Written.' }])
  await using server = await gateway(at, ['--auto'], { env })
  const { body } = await server.ask('/chat', { message: 'write' })
  const path = join(at.workspace, 'new.txt')
  expect(existsSync(path)).toBe(true)
  const { steps } = (await server.ask(`/runs/${body.run_id}`)).body
  const { call_id } = steps.find(({ type }: { type: string }) => type === 'call')
  expect((await server.ask(`/changes/${body.run_id}/${call_id}`)).body.patch).toContain('+hello')
  const undone = await server.ask(`/runs/${body.run_id}/undo`, {})
  expect([undone.status, undone.body.undone.length, existsSync(path)]).toEqual([200, 1, false])
})

test('the rules in force are those of the token, and one call is explained without running it', async () => {
  using at = home()
  await using server = await gateway(at)
  const bot = { headers: { authorization: `Bearer ${await tokenOf(at, 'bot')}` } }
  expect((await server.ask('/policy')).body).toMatchObject({ level: 'supervised', forbidden_commands: expect.arrayContaining(['rm']) })
  expect((await server.ask('/policy', undefined, bot)).body).toMatchObject({ level: 'readonly', tools: ['time', 'memory_search'] })
  const asked = { tool: 'file_write', input: { path: 'x', content: 'y' } }
  expect((await server.ask('/policy/explain', asked)).body).toMatchObject({ verdict: expect.stringMatching(/allow|ask/) })
  expect((await server.ask('/policy/explain', asked, bot)).body.verdict).toBe('deny')
  expect(existsSync(join(at.workspace, 'x'))).toBe(false)
})

test('a conversation is renamed and deleted, its receipts stay', async () => {
  using at = home()
  const { env } = scripted(at, [call('time', {}), { text: 'Late.' }])
  await using server = await gateway(at, [], { env })
  const { conversation_id: id } = (await server.ask('/chat', { message: 'time?' })).body
  const path = `/conversations/${id}`
  expect((await server.ask(path, { title: 'Clock' }, { method: 'PATCH' })).body).toMatchObject({ id, title: 'Clock' })
  expect((await server.ask('/conversations')).body.conversations).toMatchObject([{ id, title: 'Clock' }])
  expect((await server.ask(path, undefined, { method: 'DELETE' })).body).toMatchObject({ id, runs: 1 })
  expect((await server.ask(path)).status).toBe(404)
  expect((await server.ask('/receipts')).body.receipts.length).toBeGreaterThan(0)
})
