/** What is allowed and why, over the gateway: lists in force, explanations, permanent approvals; and the anchor of the receipts. */

import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sqlite } from '../support/alterations.ts'
import { gateway, tokenOf } from '../support/gateway.ts'
import { withSealedMemory } from '../support/record.ts'
import { call, home, scripted } from '../support/turns.ts'

const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

test('the lists in force are those of "security show", and those of a narrow token are lowered to its limits', async () => {
  using at = home()
  await using server = await gateway(at)
  const { body } = await server.ask('/policy')
  const shown = JSON.parse((await at.run(['security', 'show', '--json'])).stdout)
  expect([body.level, body.allow_commands, body.forbidden_commands]).toEqual([shown.level, shown.allowCommands, shown.forbiddenCommands])
  expect([body.protected_names, body.network.ports, body.settings.ask]).toEqual([shown.protectedNames, [80, 443], shown.settings.ask])
  const bot = await tokenOf(at, 'bot', '--tools', 'time')
  expect((await server.ask('/policy', undefined, as(bot))).body).toMatchObject({ level: 'readonly', tools: ['time'] })
})

test('a command and a tool call are explained as "policy explain" does, with rule and reason, and nothing runs', async () => {
  using at = home()
  await using server = await gateway(at)
  const explain = (question: object, init?: RequestInit) => server.ask('/policy/explain', question, init)
  expect((await explain({ command: 'rm -rf /' })).body).toMatchObject({ verdict: 'deny', rule: 'command.forbidden' })
  const written = { tool: 'file_write', input: { path: 'new.txt', content: 'x' } }
  expect((await explain(written)).body).toMatchObject({ verdict: 'ask', level: 'supervised', levels: { full: { verdict: 'allow' } } })
  const outside = await explain({ tool: 'file_read', input: { path: '/etc/passwd' } })
  const said = JSON.parse((await at.run(['policy', 'explain', '--json', '--tool', 'file_read', '--args', '{"path":"/etc/passwd"}'])).stdout)
  expect(outside.body).toMatchObject({ verdict: 'deny', rule: said.rule, reason: said.reason, meaning: said.meaning })
  const bot = await tokenOf(at, 'bot')
  expect((await explain(written, as(bot))).body.verdict).toBe('deny')
  for (const wrong of [{}, { command: 'ls', tool: 'shell' }, { command: 'ls', input: {} }, { command: 7 }, { tool: 'time', input: 'x' }])
    expect([wrong, (await explain(wrong)).status]).toEqual([wrong, 400])
})

test('a permanent approval is listed, and revoked by an admin alone', async () => {
  using at = home()
  await using server = await gateway(at)
  await server.ask('/chat', { message: 'hi' })
  const rule = { tool: 'shell', scope: '["git","push"]' }
  withSealedMemory(join(at.home, '.braidclaw'), ({ approvals }) => approvals.addRule({ ...rule, by: 'me' }))
  sqlite(at, `INSERT INTO always_rules(tool, scope, added_by, added_at) VALUES ('shell', '["git","pull"]', 'me', 1)`)
  const listed = await server.ask('/approvals/rules')
  expect(listed.body.rules).toMatchObject([
    { id: 1, ...rule, allows: 'git push', added_by: 'me' },
    { id: 2, allows: 'git pull', added_by: 'me', added_at: 1, altered: true },
  ])
  expect((await server.ask('/approvals/rules/2', undefined, { method: 'DELETE' })).status).toBe(200)
  const remove = (init?: RequestInit) => server.ask('/approvals/rules/1', undefined, { method: 'DELETE', ...init })
  expect((await remove(as(await tokenOf(at, 'asker', '--scope', 'approve')))).status).toBe(403)
  expect((await remove()).body.allows).toBe('git push')
  expect([(await server.ask('/approvals/rules')).body.rules, (await remove()).status]).toEqual([[], 404])
})

test('the anchor is the line of "receipt anchor"; a log cut after it is found by it, and a broken one gets none', async () => {
  using at = home()
  at.file('a.txt', 'hello')
  const read = call('file_read', { path: 'a.txt' })
  const { env } = scripted(at, [read, { text: 'one' }, read, { text: 'two' }])
  await using server = await gateway(at, [], { env })
  expect((await server.ask('/receipts/anchor')).status).toBe(404)
  await server.ask('/chat', { message: 'one' })
  await server.ask('/chat', { message: 'two' })
  const { line, count } = (await server.ask('/receipts/anchor')).body
  expect([line, count]).toEqual([(await at.run(['receipt', 'anchor'])).stdout.trim(), 2])
  const verify = async (body: object) => (await server.ask('/receipts/verify', body)).body
  expect(await verify({ against: line })).toMatchObject({ ok: true, count: 2 })
  expect((await server.ask('/receipts/verify', { against: 'bc1:nonsense' })).body.error.message).toContain('not an anchor line')
  const log = join(at.home, '.braidclaw', 'tool_receipts.log')
  const [first = '', second = ''] = readFileSync(log, 'utf8').trimEnd().split('\n')
  writeFileSync(log, `${first}\n${second.replace('"file_read"', '"file_list"')}\n`)
  expect((await verify({})).ok).toBe(false)
  expect([(await server.ask('/receipts/anchor')).status, (await server.ask('/receipts/anchor')).body.error.code]).toEqual([
    409,
    'integrity',
  ])
})
