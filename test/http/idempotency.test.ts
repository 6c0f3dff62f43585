/** A request that is sent again with the same Idempotency-Key happens once: in one process, after a restart, and after a kill. */

import { expect, test } from 'bun:test'
import { type Gateway, gateway } from '../support/gateway.ts'
import { home, scripted } from '../support/turns.ts'

const keyed = (key: string) => ({ headers: { 'idempotency-key': key } })
const runs = async (server: Gateway) => (await server.ask('/runs?limit=100')).body.runs.length

test('the same key and body get the first answer, another body is refused, another token has its own keys', async () => {
  using at = home()
  const { env } = scripted(at, [{ text: 'First.', delay_ms: 300 }, { text: 'Second.' }])
  await using server = await gateway(at, [], { env })
  const twice = await Promise.all([1, 2, 3].map(() => server.ask('/chat', { message: 'hi' }, keyed('a'))))
  expect([...new Set(twice.map(({ status, body }) => `${status} ${JSON.stringify(body)}`))]).toHaveLength(1)
  expect(twice.map(({ headers }) => headers.get('idempotency-replayed')).sort()).toEqual([null, 'true', 'true'].sort())
  expect(await runs(server)).toBe(1)
  const other = await server.ask('/chat', { message: 'ho' }, keyed('a'))
  expect([other.status, other.body.error.code]).toEqual([422, 'key_reused'])
  expect((await server.ask('/chat', { message: 'hi' }, keyed(''))).status).toBe(400)
  expect((await server.ask('/chat', { message: 'hi' }, keyed('b'))).body.text).toBe('Second.')
})

test('a refused request can be sent again with its key', async () => {
  using at = home()
  await using server = await gateway(at)
  expect((await server.ask('/chat', { message: 'hi', conversation_id: 'conversation_1' }, keyed('k'))).status).toBe(404)
  expect((await server.ask('/chat', { message: 'hi' }, keyed('k'))).status).toBe(200)
})

test('answers survive a restart, streams too; what a kill interrupted is said and not done again', async () => {
  using at = home()
  const { env } = scripted(at, [{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.', delay_ms: 20_000 }])
  const send = (server: Gateway, prompt: string, key: string) =>
    fetch(`${server.url}/run`, {
      method: 'POST',
      body: JSON.stringify({ prompt }),
      headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json', 'idempotency-key': key },
    })
  const first = await gateway(at, [], { env })
  const chat = await first.ask('/chat', { message: 'hi' }, keyed('chat'))
  const events = await (await send(first, 'run', 'run')).text()
  const lost = send(first, 'long', 'lost')
    .then((answer) => answer.text())
    .catch(() => 'cut')
  await first.says(/((?:conversation started[\s\S]*){3})/)
  await Bun.sleep(300)
  await first[Symbol.asyncDispose]()
  await lost
  await using second = await gateway(at, [], { env, token: first.token })
  expect((await second.ask('/chat', { message: 'hi' }, keyed('chat'))).body).toEqual(chat.body)
  const again = await send(second, 'run', 'run')
  expect([again.headers.get('content-type'), again.headers.get('idempotency-replayed'), await again.text()]).toEqual([
    'text/event-stream; charset=utf-8',
    'true',
    events,
  ])
  const cut = await send(second, 'long', 'lost')
  expect([cut.status, JSON.parse(await cut.text()).error.code]).toEqual([409, 'interrupted'])
  expect(await runs(second)).toBe(3)
}, 120_000)
