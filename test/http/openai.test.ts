/** The official client of OpenAI talks to the gateway: models, chat, stream, usage, errors; the agent's tools stay inside. */

import { expect, test } from 'bun:test'
import OpenAI, { APIError, NotFoundError } from 'openai'
import { countingModel } from '../support/counting-model.ts'
import { type Gateway, gateway } from '../support/gateway.ts'
import { png } from '../support/picture.ts'
import { call, home, scripted } from '../support/turns.ts'
import { until } from '../support/until.ts'
import { unknownQuestion } from '../support/window-questions.ts'

const client = ({ url, token }: Pick<Gateway, 'url' | 'token'>) => new OpenAI({ baseURL: `${url}/v1`, apiKey: token, maxRetries: 0 })
const ask = (content: string) => ({ model: 'braidclaw', messages: [{ role: 'user' as const, content }] })
const failure = (promise: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(promise).then(
    () => undefined,
    (error: unknown) => error,
  )

test('a wrong key and an unknown model are refused in the words of the API', async () => {
  using at = home()
  await using server = await gateway(at)
  expect(await failure(client({ ...server, token: 'no' }).models.list())).toMatchObject({
    status: 401,
    code: 'unauthorized',
    type: 'authentication_error',
  })
  const unknown = await failure(client(server).chat.completions.create({ ...ask('hi'), model: 'gpt-9' }))
  expect(unknown).toBeInstanceOf(NotFoundError)
  expect(unknown).toMatchObject({ code: 'model_not_found', param: 'model' })
})

test("a client's own tools, functions, several answers and formats are refused with the name of the parameter", async () => {
  using at = home()
  await using server = await gateway(at)
  const { completions } = client(server).chat
  const own = [{ type: 'function' as const, function: { name: 'mine', parameters: {} } }]
  for (const [param, more] of [
    ['tools', { tools: own }],
    ['functions', { functions: [{ name: 'mine' }] }],
    ['n', { n: 2 }],
    ['response_format', { response_format: { type: 'json_object' as const } }],
    ['messages', { messages: [{ role: 'user' as const, content: [{ type: 'image_url' as const, image_url: { url: 'http://x/' } }] }] }],
    ['messages', { messages: [{ role: 'assistant' as const, content: 'I said' }] }],
  ] as const) {
    const refused = await failure(completions.create({ ...ask('hi'), ...more } as Parameters<typeof completions.create>[0]))
    expect(refused).toBeInstanceOf(APIError)
    expect(refused).toMatchObject({ status: 400, code: 'unsupported_parameter', type: 'invalid_request_error', param })
  }
})

test('an answer after a tool call has its text and usage, and no tool call leaves the agent', async () => {
  using at = home()
  at.file('a.txt', 'hello')
  const { env } = scripted(at, [
    { ...call('file_read', { path: 'a.txt' }), usage: { input_tokens: 7, output_tokens: 3 } },
    { text: 'It says hello.', usage: { input_tokens: 9, output_tokens: 4 } },
  ])
  await using server = await gateway(at, [], { env })
  const { data } = await client(server).models.list()
  expect(data.map(({ id }) => id)).toContain('braidclaw')
  const answer = await client(server).chat.completions.create(ask('read it'))
  expect(answer.choices).toEqual([
    { index: 0, message: { role: 'assistant', content: 'It says hello.', refusal: null }, finish_reason: 'stop', logprobs: null },
  ])
  expect(answer.usage).toMatchObject({ prompt_tokens: 16, completion_tokens: 7, total_tokens: 23 })
})

test('the history of the client reaches the model, and a stream has the text in pieces', async () => {
  using model = countingModel()
  using at = home(model.config)
  await using server = await gateway(at, ['--model', 'fake/m'])
  const stream = await client(server).chat.completions.create({
    model: 'braidclaw',
    stream: true,
    stream_options: { include_usage: true },
    messages: [
      { role: 'system', content: 'You are brief.' },
      { role: 'user', content: 'Remember 17.' },
      { role: 'assistant', content: 'Kept.' },
      { role: 'user', content: [{ type: 'text', text: 'Count.' }] },
    ],
  })
  const chunks = []
  for await (const chunk of stream) chunks.push(chunk)
  expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('One two three.')
  expect(chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? [])).toEqual(['stop'])
  expect(chunks.at(-1)?.usage?.total_tokens).toBeGreaterThan(0)
  expect(chunks[0]?.choices[0]?.delta.role).toBe('assistant')
  const [system, ...rest] = model.asked[0]?.messages ?? []
  expect(system?.content).toStartWith('You are brief.')
  expect(rest.map(({ role, content }) => [role, content])).toEqual([
    ['user', 'Remember 17.'],
    ['assistant', 'Kept.'],
    ['user', 'Count.'],
  ])
})

test('past calls of the client’s own tools, their results and developer messages are text in the history', async () => {
  using model = countingModel()
  using at = home(model.config)
  await using server = await gateway(at, ['--model', 'fake/m'])
  const { completions } = client(server).chat
  const weather = { id: 'call_1', type: 'function' as const, function: { name: 'weather', arguments: '{"city":"Paris"}' } }
  const search = { id: 'call_2', type: 'custom' as const, custom: { name: 'search', input: 'rain' } }
  const past = [
    { role: 'developer' as const, content: 'You are brief.' },
    { role: 'user' as const, content: 'How is it?' },
    { role: 'assistant' as const, content: null, tool_calls: [weather, search] },
    { role: 'tool' as const, tool_call_id: 'call_1', content: [{ type: 'text' as const, text: '18 degrees' }] },
    { role: 'tool' as const, tool_call_id: 'call_2', content: 'no rain' },
  ]
  await completions.create({
    model: 'braidclaw',
    messages: [
      ...past,
      { role: 'assistant', content: [{ type: 'refusal', refusal: 'I may not say.' }] },
      { role: 'user', content: 'Why?' },
    ],
  })
  const before = [
    ['user', 'How is it?'],
    [
      'assistant',
      `[The client's own tool weather was called (call_1) with: {"city":"Paris"}]\n[The client's own tool search was called (call_2) with: rain]`,
    ],
  ]
  const results = `[The client's own tool weather returned (call_1):]\n18 degrees\n\n[The client's own tool search returned (call_2):]\nno rain`
  const sent = (at: number) => (model.asked[at]?.messages ?? []).slice(1).map(({ role, content }) => [role, content])
  expect(model.asked[0]?.messages[0]?.content).toStartWith('You are brief.')
  expect(sent(0)).toEqual([...before, ['user', results], ['assistant', 'I may not say.'], ['user', 'Why?']])
  await completions.create({ model: 'braidclaw', messages: past })
  expect(sent(1)).toEqual([...before, ['user', results]])
  await completions.create({
    model: 'braidclaw',
    messages: [
      { role: 'assistant', content: 'Wait.', function_call: { name: 'old', arguments: '{}' } },
      { role: 'function', name: 'old', content: 'done' },
      { role: 'user', content: 'So?' },
    ],
  })
  expect(sent(2)).toEqual([
    ['assistant', `Wait.\n[The client's own tool old was called (old) with: {}]`],
    ['user', `[The client's own tool old returned (old):]\ndone\n\nSo?`],
  ])
  for (const wrong of [
    { role: 'tool', content: 'x' },
    { role: 'robot', content: 'x' },
    { role: 'assistant', tool_calls: [{ id: 1 }] },
  ])
    expect(await failure(completions.create({ model: 'braidclaw', messages: [wrong, ...ask('hi').messages] as never }))).toMatchObject({
      status: 400,
      message: expect.stringContaining('messages.0'),
    })
})

test('a stream says that it lives before the first token and while the model is silent, and the official client reads over that', async () => {
  const held = Promise.withResolvers<void>()
  using model = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const unknown = unknownQuestion(request)
      if (unknown) return unknown
      await held.promise
      const chunk = { choices: [{ index: 0, delta: { content: 'Late.' } }] }
      return new Response(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`, { headers: { 'content-type': 'text/event-stream' } })
    },
  })
  using at = home(`[providers.models.fake]\nkind = "openai-compatible"\nbase_url = "${model.url.href}v1"\nmodel = "m"\n`)
  await using server = await gateway(at, ['--model', 'fake/m'])
  const reads = client(server).chat.completions.create({ ...ask('hi'), stream: true })
  const raw = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ ...ask('hi'), stream: true }),
    headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
  })
  const reading = { text: '' }
  const ended = (async () => {
    for await (const piece of raw.body?.pipeThrough(new TextDecoderStream()) ?? []) reading.text += piece
  })()
  await until(() => reading.text.includes(': ping\n\n'))
  expect(reading.text).not.toContain('data:')
  held.resolve()
  await ended
  expect(reading.text).toEndWith('data: [DONE]\n\n')
  const texts = []
  for await (const chunk of await reads) texts.push(chunk.choices[0]?.delta.content ?? '')
  expect(texts.join('')).toBe('Late.')
}, 60_000)

test('a refused call is told in the answer, and a failed provider is an error', async () => {
  using at = home()
  const { env } = scripted(at, [call('shell', { command: 'rm -rf /' }), { text: 'Done.' }, { error: 'server_error' }])
  await using server = await gateway(at, [], { env })
  const answer = await client(server).chat.completions.create(ask('delete all'))
  expect(answer.choices[0]?.message.content).toMatch(/Done\.\n\n\[denied: /)
  expect(answer.choices[0]?.finish_reason).toBe('content_filter')
  expect(await failure(client(server).chat.completions.create(ask('again')))).toMatchObject({ status: 502, code: 'provider' })
})

test('an open question is named although the model went on, and the answer does not count as a plain stop', async () => {
  using at = home('', 'ask = "before"\nunlisted_commands = "ask"\n')
  at.file('a.txt', 'hello')
  const { env } = scripted(at, [
    call('file_write', { path: 'new.txt', content: 'x' }),
    call('file_read', { path: 'a.txt' }),
    { text: 'So.' },
  ])
  await using server = await gateway(at, [], { env })
  const [choice] = (await client(server).chat.completions.create(ask('write'))).choices
  expect(choice?.message.content).toMatch(/^So\.\n\n\[approval needed; open questions: run_\S+\]$/)
  expect(choice?.finish_reason).toBe('content_filter')
})

test('pictures of data: URLs reach the model, by this API and by our own; what is not a picture is refused', async () => {
  using model = countingModel()
  using at = home(model.config)
  await using server = await gateway(at, ['--model', 'fake/m'])
  const url = `data:image/jpeg;base64,${Buffer.from(png()).toString('base64')}`
  const shown = { type: 'image_url', image_url: { url: url.replace('jpeg', 'png') } }
  const said = (parts: object[]) => ({ model: 'braidclaw', messages: [{ role: 'user', content: parts }] })
  const chat = (url: string) => server.ask('/v1/chat/completions', said([{ type: 'image_url', image_url: { url } }]))
  for (const [bad, why] of [
    ['data:image/png;base64,aGVsbG8=', 'image 1: its content is not a PNG'],
    ['https://x.org/a.png', 'only data: URLs'],
    ['file:///etc/passwd', 'only data: URLs'],
  ] as const) {
    expect((await chat(bad)).body.error.message).toContain(why)
    const own = await server.ask('/chat', { message: 'look', images: [bad] })
    expect([own.status, JSON.stringify(own.body)]).toEqual([400, expect.stringContaining(why)])
  }
  expect(model.asked).toHaveLength(0)
  expect((await chat(url)).status).toBe(200)
  expect(model.asked[0]?.messages.at(-1)).toEqual({ role: 'user', content: [{ type: 'text', text: '[1 picture]' }, shown] } as never)
  const input = [
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'look' },
        { type: 'input_image', image_url: url },
      ],
    },
  ]
  expect((await server.ask('/v1/responses', { model: 'braidclaw', input })).status).toBe(200)
  expect((await server.ask('/chat', { message: 'look', images: [url] })).status).toBe(200)
  const ran = await fetch(`${server.url}/run`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: 'look', images: [url, url] }),
  })
  expect([ran.status, await ran.text()]).toEqual([200, expect.stringContaining('"done"')])
  const last = (n: number) => model.asked[n]?.messages.at(-1)?.content
  const look = { type: 'text', text: 'look' }
  expect([last(1), last(2), last(3)]).toEqual([
    [look, shown],
    [look, shown],
    [look, shown, shown],
  ] as never)
  const large = Buffer.from(png({ width: 1_400, height: 1_400, noise: true })).toString('base64')
  expect((await server.ask('/chat', { message: 'look', images: [`data:;base64,${large}`] })).status).toBe(200)
  // Whoever has no token sends no more than a message without pictures.
  const body = JSON.stringify({ message: 'look', images: [`data:;base64,${large}`] })
  const headers = { 'content-type': 'application/json' }
  expect((await fetch(`${server.url}/chat`, { method: 'POST', headers, body })).status).toBe(413)
  expect((await fetch(`${server.url}/chat`, { method: 'POST', headers: { ...headers, authorization: 'Bearer no' }, body })).status).toBe(
    401,
  )
}, 60_000)
