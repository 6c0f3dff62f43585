/** Clients as they are: OpenAI's own library, and requests that a runner should not be able to make. */

import { afterEach, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { dialects, upTo } from '../../support/dialects.ts'
import { type Asked, sends } from '../../support/vendor-fake.ts'
import { type Metered, startMetered } from './metered-server.ts'

const running: Metered[] = []
afterEach(() => {
  for (const one of running.splice(0)) one.stop()
})

function started(...given: Parameters<typeof startMetered>): Metered {
  const metered = startMetered(...given)
  running.push(metered)
  return metered
}

const [chat, messages, responses] = dialects
const hello = { text: ['Hel', 'lo'] }
const user = [{ role: 'user', content: 'hi' }] as const

/** Answers a stream with a stream, and everything else with a document, in the dialect of the path. */
function vendor({ path, text }: Asked): Response {
  const dialect = dialects.find((one) => path === `/v1${one.path}`)
  if (!dialect) return Response.json({ object: 'list', data: [{ id: 'model-1', object: 'model' }] })
  return JSON.parse(text).stream ? sends(dialect.events(hello)) : Response.json(JSON.parse(dialect.whole(hello)))
}

const clientOf = ({ url }: Metered) => new OpenAI({ baseURL: url, apiKey: 'cpr_test', maxRetries: 2 })

test('OpenAI’s library is refused once, and does not try again, when the budget is gone or the run is cancelled', async () => {
  const metered = started(vendor, { limit: 100 })
  const calls = { looks: 0 }
  const { reserve } = metered.plane.budget
  const counted: typeof reserve = (...given) => {
    calls.looks += 1
    return reserve(...given)
  }
  Object.assign(metered.plane.budget, { reserve: counted })
  const refused = await clientOf(metered)
    .chat.completions.create({ model: 'm', messages: [...user] })
    .catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(OpenAI.APIError)
  expect(refused).toMatchObject({ status: 402, code: 'budget_exceeded', type: 'insufficient_quota' })
  expect(calls.looks).toBe(1)
  metered.plane.state.cancelled = true
  const cancelled = await clientOf(metered)
    .responses.create({ model: 'm', input: 'hi' })
    .catch((error: unknown) => error)
  expect(cancelled).toMatchObject({ status: 409, code: 'conflict' })
  expect(metered.vendor.asked).toEqual([])
})

test('OpenAI’s library chats, streams and lists models; a client that asked for no counts gets none', async () => {
  const metered = started(vendor)
  const client = clientOf(metered)
  expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['model-1'])
  const whole = await client.chat.completions.create({ model: 'm', messages: [...user] })
  expect([whole.choices[0]?.message.content, whole.usage?.total_tokens]).toEqual(['Hello', 120])
  let text = ''
  for await (const chunk of await client.chat.completions.create({ model: 'm', messages: [...user], stream: true })) {
    expect(chunk.choices.length).toBe(1)
    text += chunk.choices[0]?.delta.content ?? ''
  }
  expect(text).toBe('Hello')
  // The vendor counts in a stream only for those who ask.
  expect(JSON.parse(metered.vendor.asked.at(-1)?.text ?? '{}').stream_options).toEqual({ include_usage: true })
  const types: string[] = []
  for await (const event of await client.responses.create({ model: 'm', input: 'hi', stream: true })) types.push(event.type)
  expect(types.at(-1)).toBe('response.completed')
  expect(metered.plane.settled).toEqual([120, 120, 120])
})

test('OpenAI’s library throws when a run is cancelled in the middle of a stream', async () => {
  const metered = started(() => sends(chat ? upTo(chat, 'Hel') : [], 'hold'))
  const stream = await clientOf(metered).chat.completions.create({ model: 'm', messages: [...user], stream: true })
  const read = async () => {
    for await (const _ of stream) metered.plane.state.cancelled = true
  }
  expect(await read().catch((error: unknown) => error)).toMatchObject({ code: 'conflict' })
})

test.each([
  ['/responses', { previous_response_id: 'r' }],
  ['/responses', { background: true }],
  ['/responses', { conversation: 'c' }],
  ['/responses', { prompt: { id: 'p' } }],
])('POST %s with %j cannot be metered and is refused', async (path, extra) => {
  const metered = started(vendor)
  const answer = await metered.post(path, { model: 'm', input: 'hi', ...extra })
  expect(answer.status).toBe(400)
  expect(await answer.text()).toContain(Object.keys(extra)[0] ?? '')
  expect(metered.vendor.asked).toEqual([])
})

test('a body that is too large, no JSON, too deep or compressed is refused after the token, in the vendor’s shape', async () => {
  const metered = started(vendor)
  const send = async (body: string | Uint8Array, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${metered.url}/messages`, {
      method: 'POST',
      headers: { 'x-api-key': 'cpr_test', 'content-type': 'application/json', ...headers },
      body,
    })
    return [answer.status, (await answer.text()).slice(0, 30)]
  }
  const shape = '{"type":"error","error":{"type'
  expect(await send(`{"a":"${'x'.repeat(16_777_300)}"}`)).toEqual([413, shape])
  expect(await send('{"a":')).toEqual([400, shape])
  expect(await send('['.repeat(300))).toEqual([400, shape])
  expect(await send('{}', { 'content-encoding': 'gzip' })).toEqual([415, shape])
  expect(await send('{"model":"m"}', { 'x-api-key': 'wrong', 'content-encoding': 'gzip' })).toEqual([401, shape])
  expect(metered.vendor.asked).toEqual([])
})

test('headers of the runner that could name another account, and headers that tell of the operator’s, go no further', async () => {
  const metered = started(() => {
    const headers = { 'set-cookie': 'a=b', 'openai-organization': 'org-1', 'x-request-id': 'req_1', 'content-type': 'application/json' }
    return new Response(messages?.whole(hello), { headers })
  })
  const foreign = {
    cookie: 'a=b',
    'openai-organization': 'mine',
    'x-forwarded-for': '1.2.3.4',
    'anthropic-beta': 'b-1',
    'proxy-authorization': 'x',
  }
  const answer = await metered.post('/messages', { model: 'm', max_tokens: 10, messages: user }, { 'x-api-key': 'cpr_test', ...foreign })
  const sent = [...(metered.vendor.asked[0]?.headers.keys() ?? [])]
  expect(sent).toContain('anthropic-beta')
  for (const name of ['cookie', 'openai-organization', 'x-forwarded-for', 'proxy-authorization', 'authorization'])
    expect(sent).not.toContain(name)
  expect([answer.headers.get('x-request-id'), answer.headers.get('set-cookie'), answer.headers.get('openai-organization')]).toEqual([
    'req_1',
    null,
    null,
  ])
})

test.each(['/embeddings', '/models/../keys', '/models/%2e%2e/keys', '/messages/batches', '/files', '/chat/completions/x', '/'])(
  'there is no %s',
  async (path) => {
    const metered = started(vendor)
    const answer = await fetch(`${metered.url}${path}`, { headers: { authorization: 'Bearer cpr_test' } })
    expect(answer.status).toBe(404)
    expect(metered.vendor.asked).toEqual([])
  },
)

test('counting tokens costs none, and asks the vendor with its key', async () => {
  const metered = started(() => Response.json({ input_tokens: 7 }), { limit: 0 })
  const answer = await metered.post('/messages/count_tokens', { model: 'm', messages: user }, { 'x-api-key': 'cpr_test' })
  expect(await answer.json()).toEqual({ input_tokens: 7 })
  expect(metered.vendor.asked[0]?.path).toBe('/v1/messages/count_tokens')
  expect(metered.plane.settled).toEqual([])
})

test('thinking is shortened with the answer, or the call is refused when too little is left', async () => {
  const thinking = { type: 'enabled', budget_tokens: 8_000 }
  const body = { model: 'm', max_tokens: 10_000, thinking, messages: user }
  const some = started(vendor, { limit: 3_000 })
  expect((await some.post('/messages', body)).status).toBe(200)
  const sent = JSON.parse(some.vendor.asked[0]?.text ?? '{}')
  expect(sent.thinking.budget_tokens).toBeLessThan(sent.max_tokens)
  const little = started(vendor, { limit: 1_000 })
  expect((await little.post('/messages', body)).status).toBe(402)
  expect([little.plane.state.spent, little.plane.state.reserved, little.vendor.asked.length]).toEqual([0, 0, 0])
})

test('a picture counts as a picture, not by its bytes', async () => {
  const metered = started(vendor, { limit: null })
  const url = `data:image/png;base64,${'A'.repeat(1_000_000)}`
  const content = [{ type: 'image_url', image_url: { url } }]
  await metered.post('/chat/completions', { model: 'm', max_tokens: 100, messages: [{ role: 'user', content }] })
  expect(metered.plane.reservedSums[0]).toBeLessThan(3_000)
  expect(metered.plane.reservedSums[0]).toBeGreaterThan(2_500)
  expect(responses?.path).toBe('/responses')
})
