/** The official client of OpenAI creates and streams responses; what does not exist here is refused by name. */

import { expect, test } from 'bun:test'
import OpenAI, { APIError, NotFoundError } from 'openai'
import { countingModel } from '../support/counting-model.ts'
import { type Gateway, gateway, tokenOf } from '../support/gateway.ts'
import { call, home, scripted } from '../support/turns.ts'

const client = ({ url, token }: Pick<Gateway, 'url' | 'token'>) => new OpenAI({ baseURL: `${url}/v1`, apiKey: token, maxRetries: 0 })
const hi = { model: 'braidclaw', input: 'hi' }
const failure = (promise: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(promise).then(
    () => undefined,
    (error: unknown) => error,
  )

test('a wrong key, a token without the scope, an unknown model and what does not exist here are refused by name', async () => {
  using at = home()
  await using server = await gateway(at)
  const { responses } = client(server)
  expect(await failure(client({ ...server, token: 'no' }).responses.create(hi))).toMatchObject({ status: 401, code: 'unauthorized' })
  const reader = await tokenOf(at, 'reader', '--scope', 'read')
  expect(await failure(client({ ...server, token: reader }).responses.create(hi))).toMatchObject({ status: 403, code: 'forbidden' })
  expect(await failure(responses.create({ ...hi, model: 'gpt-9' }))).toBeInstanceOf(NotFoundError)
  const image = { type: 'input_image' as const, image_url: 'http://x/', detail: 'auto' as const }
  for (const [param, more] of [
    ['previous_response_id', { previous_response_id: 'resp_1' }],
    ['conversation', { conversation: 'conv_1' }],
    ['prompt', { prompt: { id: 'pmpt_1' } }],
    ['background', { background: true }],
    ['tools', { tools: [{ type: 'web_search' }] }],
    ['text.format', { text: { format: { type: 'json_object' } } }],
    ['input', { input: [{ role: 'user', content: [image] }] }],
    ['input', { input: [{ role: 'robot', content: 'x' }] }],
    ['input', { input: [{ type: 'item_reference', id: 'x' }] }],
    ['input', { input: [{ type: 'function_call_output', output: 'x' }] }],
    ['input', { input: [{ role: 'assistant', content: 'I said' }] }],
    ['input', { input: [] }],
    ['input', { input: ' ' }],
  ] as const) {
    const refused = await failure(responses.create({ ...hi, ...more } as never))
    expect(refused).toBeInstanceOf(APIError)
    expect([param, refused]).toMatchObject([param, { status: 400, code: 'unsupported_parameter', type: 'invalid_request_error', param }])
    expect(String(refused)).toContain(param)
  }
  expect((await server.ask('/runs')).body.runs).toEqual([])
}, 60_000)

test('instructions, items, past calls of the client’s own tools and their results reach the model', async () => {
  using model = countingModel()
  using at = home(model.config)
  await using server = await gateway(at, ['--model', 'fake/m'])
  const { responses } = client(server)
  const first = await responses.create({ ...hi, instructions: 'You are brief.' })
  expect([first.object, first.status, first.output_text, first.error]).toEqual(['response', 'completed', 'One two three.', null])
  await responses.create({
    model: 'braidclaw',
    instructions: 'You are brief.',
    input: [
      { role: 'developer', content: 'Be kind.' },
      { role: 'user', content: 'hi' },
      ...(first.output as OpenAI.Responses.ResponseInputItem[]),
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'How is it ' },
          { type: 'input_text', text: 'there?' },
        ],
      },
      { type: 'reasoning', id: 'rs_1', summary: [] },
      { type: 'function_call', call_id: 'call_1', name: 'weather', arguments: '{"city":"Paris"}' },
      { type: 'custom_tool_call', call_id: 'call_2', name: 'search', input: 'rain' },
      { type: 'function_call_output', call_id: 'call_1', output: [{ type: 'input_text', text: '18 degrees' }] },
      { type: 'custom_tool_call_output', call_id: 'call_2', output: 'no rain' },
    ],
  })
  const [system, ...rest] = model.asked[1]?.messages ?? []
  expect(system?.content).toStartWith('You are brief.\n\nBe kind.')
  expect(rest.map(({ role, content }) => [role, content])).toEqual([
    ['user', 'hi'],
    ['assistant', 'One two three.'],
    ['user', 'How is it there?'],
    [
      'assistant',
      `[The client's own tool weather was called (call_1) with: {"city":"Paris"}]\n[The client's own tool search was called (call_2) with: rain]`,
    ],
    [
      'user',
      `[The client's own tool weather returned (call_1):]\n18 degrees\n\n[The client's own tool search returned (call_2):]\nno rain`,
    ],
  ])
})

test('a stream has the events of the API in their order, and its end is what create returns', async () => {
  using model = countingModel()
  using at = home(model.config)
  await using server = await gateway(at, ['--model', 'fake/m'])
  const events = []
  for await (const event of await client(server).responses.create({ ...hi, metadata: { a: 'b' }, stream: true })) events.push(event)
  const types = events.map(({ type }) => type)
  // Pieces that arrive together are one delta.
  expect(types.filter((type, at) => type !== types[at - 1])).toEqual([
    'response.created',
    'response.in_progress',
    'response.output_item.added',
    'response.content_part.added',
    'response.output_text.delta',
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.completed',
  ])
  expect(events.map((event) => (event.type === 'response.output_text.delta' ? event.delta : '')).join('')).toBe('One two three.')
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, number) => number))
  const streamed = await client(server)
    .responses.stream({ ...hi, metadata: { a: 'b' } })
    .finalResponse()
  const whole = await client(server).responses.create({ ...hi, metadata: { a: 'b' } })
  const plain = ({ output, usage, status, metadata, output_text }: OpenAI.Responses.Response) =>
    JSON.parse(JSON.stringify({ output, usage, status, metadata, output_text }).replaceAll(/msg_\w+/g, 'msg'))
  expect(plain(streamed)).toMatchObject(plain(whole))
  expect(whole.metadata).toEqual({ a: 'b' })
  expect(whole.usage?.total_tokens).toBeGreaterThan(0)
})

test('the usage counts the whole turn, no tool call leaves the agent, and a repeated key gets the first answer', async () => {
  using at = home()
  at.file('a.txt', 'hello')
  const { env } = scripted(at, [
    { ...call('file_read', { path: 'a.txt' }), usage: { input_tokens: 7, output_tokens: 3 } },
    { text: 'It says hello.', usage: { input_tokens: 9, output_tokens: 4 } },
  ])
  await using server = await gateway(at, [], { env })
  const once = { headers: { 'idempotency-key': 'one' } }
  const answer = await client(server).responses.create(hi, once)
  expect(answer.output).toMatchObject([{ type: 'message', role: 'assistant', status: 'completed', content: [{ text: 'It says hello.' }] }])
  expect(answer.usage).toMatchObject({ input_tokens: 16, output_tokens: 7, total_tokens: 23 })
  expect((await client(server).responses.create(hi, once)).id).toBe(answer.id)
})

test('a refused call makes the response incomplete, and a failed turn is failed in a stream and an error without', async () => {
  using at = home()
  const { env } = scripted(at, [
    call('shell', { command: 'rm -rf /' }),
    { text: 'Done.' },
    call('shell', { command: 'rm -rf /' }),
    { text: 'Done.' },
    { error: 'server_error' },
    { error: 'server_error' },
  ])
  await using server = await gateway(at, [], { env })
  const { responses } = client(server)
  const refused = await responses.create(hi)
  expect([refused.status, refused.incomplete_details]).toEqual(['incomplete', { reason: 'content_filter' }])
  expect(refused.output_text).toMatch(/Done\.\n\n\[denied: /)
  const streams = [await responses.stream(hi).finalResponse(), await responses.stream(hi).finalResponse()]
  expect(streams.map(({ status, error, output_text }) => [status, error?.code, output_text])).toEqual([
    ['incomplete', undefined, expect.stringMatching(/Done\.\n\n\[denied: /)],
    ['failed', 'server_error', ''],
  ])
  expect(await failure(responses.create(hi))).toMatchObject({ status: 502, code: 'provider', type: 'server_error' })
})

test('a revoked token’s stream ends with an error that the client throws', async () => {
  using at = home()
  const { env } = scripted(at, [{ text: 'one two three four five', delay_ms: 20_000, chunks: 5 }])
  await using server = await gateway(at, [], { env })
  const token = await tokenOf(at, 'bad')
  const stream = await client({ ...server, token }).responses.create({ ...hi, stream: true })
  expect((await at.run(['token', 'revoke', 'bad'])).code).toBe(0)
  const types: string[] = []
  const read = async () => {
    for await (const { type } of stream) types.push(type)
  }
  expect(await failure(read())).toMatchObject({ code: 'unauthorized' })
  expect(types).not.toContain('response.completed')
}, 30_000)
