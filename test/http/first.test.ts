/** The gateway answers through real sockets: nothing without a token, a turn with one, and no word of it in the log. */

import { expect, test } from 'bun:test'
import { gateway, tokenOf } from '../support/gateway.ts'
import { call, home, scripted } from '../support/turns.ts'

test('without a token only /health answers', async () => {
  using at = home()
  await using server = await gateway(at)
  const plain = (path: string, init: RequestInit = {}) => server.ask(path, undefined, { ...init, headers: { authorization: '' } })
  expect((await fetch(`${server.url}/health`)).status).toBe(200)
  expect((await fetch(`${server.url}/status`)).status).toBe(401)
  expect((await plain('/status')).body.error.code).toBe('unauthorized')
  expect((await fetch(`${server.url}/status`, { headers: { authorization: `Bearer ${server.token}x` } })).status).toBe(401)
  expect((await server.ask('/status')).status).toBe(200)
})

test('a chat with a tool call is answered, with its receipt, and goes on in its conversation', async () => {
  using at = home()
  at.file('a.txt', 'hello')
  const { env } = scripted(at, [call('file_read', { path: 'a.txt' }), { text: 'It says hello.' }, { text: 'Again.' }])
  await using server = await gateway(at, [], { env })
  const { status, body } = await server.ask('/chat', { message: 'read a.txt' })
  expect([status, body.text, body.ending.code]).toEqual([200, 'It says hello.', 'answered'])
  expect(body.tool_calls).toMatchObject([{ name: 'file_read', input: { path: 'a.txt' }, status: 'completed' }])
  expect(body.receipts).toHaveLength(1)
  const next = await server.ask('/chat', { message: 'and?', conversation_id: body.conversation_id })
  expect([next.body.text, next.body.conversation_id]).toEqual(['Again.', body.conversation_id])
  const { code, stderr } = await server.stop()
  expect(code).toBe(0)
  expect(stderr).not.toContain(server.token)
})

test('a revoked token is refused at once, and a token without the scope may not', async () => {
  using at = home()
  await using server = await gateway(at)
  const reader = await tokenOf(at, 'reader', '--scope', 'read')
  const as = { headers: { authorization: `Bearer ${reader}` } }
  expect((await server.ask('/chat', { message: 'hi' }, as)).status).toBe(403)
  expect((await server.ask('/status', undefined, as)).status).toBe(200)
  expect((await at.run(['token', 'revoke', 'reader'])).code).toBe(0)
  expect((await server.ask('/status', undefined, as)).status).toBe(401)
})
