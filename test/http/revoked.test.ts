/** A token that is revoked or rotated in a shell beside the server: what it reads ends, its turns are cancelled, and others go on. */

import { expect, test } from 'bun:test'
import { type Gateway, gateway, tokenOf } from '../support/gateway.ts'
import { call, home, scripted } from '../support/turns.ts'
import { until } from '../support/until.ts'
import { unknownQuestion } from '../support/window-questions.ts'

const scopes = ['--scope', 'chat', '--scope', 'read'] as const
const refusal = 'this token is not in force any more'

/** A model that says a word again and again until its client leaves; `left` has the questions of those that left. */
function endlessModel() {
  const [asked, left] = [[] as string[], [] as string[]]
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const unknown = unknownQuestion(request)
      if (unknown) return unknown
      const { messages } = (await request.json()) as { messages: { role: string; content: string }[] }
      const question = messages.at(-1)?.content ?? ''
      asked.push(question)
      request.signal.addEventListener('abort', () => left.push(question))
      async function* words() {
        for (let at = 0; !request.signal.aborted; at++) {
          yield `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: `${question}-${at} ` }, finish_reason: null }] })}\n\n`
          await Bun.sleep(30)
        }
      }
      return new Response(words(), { headers: { 'content-type': 'text/event-stream' } })
    },
  })
  const config = `[providers.models.fake]\nkind = "openai-compatible"\nbase_url = "${server.url.href}v1"\nmodel = "m"\n`
  return { asked, left, config, [Symbol.dispose]: () => void server.stop(true) }
}

type Reading = { readonly text: () => string; readonly ended: Promise<string>; leave(): void; readonly status: number }

/** Sends a request and reads its answer piece by piece. */
async function read(server: Gateway, token: string, path: string, body?: object): Promise<Reading> {
  const client = new AbortController()
  const response = await fetch(`${server.url}${path}`, {
    ...(body ? { method: 'POST', body: JSON.stringify(body) } : {}),
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    signal: client.signal,
  })
  const state = { text: '' }
  const read = async () => {
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) state.text += piece
    return state.text
  }
  return { text: () => state.text, ended: read(), leave: () => client.abort(), status: response.status }
}

/** Returns the data of the events of a stream, without comments. */
const dataOf = (text: string) => text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [line.slice(6)] : []))

const agentError = { type: 'error', code: 'unauthorized', message: expect.stringContaining(refusal), recoverable: false }
const openAiError = {
  error: { code: 'unauthorized', type: 'authentication_error', param: null, message: expect.stringContaining(refusal) },
}

test.each(['revoke', 'rotate'])(
  '%s: streams end with an error as their last event, their turns are cancelled, another token’s go on',
  async (how) => {
    using model = endlessModel()
    using at = home(model.config)
    await using server = await gateway(at, ['--model', 'fake/m'])
    const [bad, good] = [await tokenOf(at, 'bad', ...scopes), await tokenOf(at, 'good', ...scopes)]
    const streams = {
      run: await read(server, bad, '/run', { prompt: 'run' }),
      chat: await read(server, bad, '/chat', { message: 'chat', stream: true }),
      openai: await read(server, bad, '/v1/chat/completions', {
        ...{ model: 'braidclaw', stream: true, on_disconnect: 'continue' },
        messages: [{ role: 'user', content: 'openai' }],
      }),
      events: await read(server, bad, '/events'),
    }
    const other = { run: await read(server, good, '/run', { prompt: 'good' }), events: await read(server, good, '/events') }
    await until(() => [...Object.values(streams), ...Object.values(other)].every(({ text }) => text().includes('-3 ')))
    expect((await at.run(['token', how, 'bad'])).code).toBe(0)
    const [run, chat, openai, events] = (
      await Promise.all([streams.run.ended, streams.chat.ended, streams.openai.ended, streams.events.ended])
    ).map(dataOf)
    expect([run, chat].map((each) => JSON.parse(each?.at(-1) ?? ''))).toEqual([agentError, agentError])
    expect(openai?.at(-1)).toBe('[DONE]')
    expect(JSON.parse(openai?.at(-2) ?? '')).toEqual(openAiError)
    expect(JSON.parse(events?.at(-1) ?? '')).toMatchObject({ event: { type: 'subscription_ended', reason: 'unauthorized' } })
    await until(() => model.left.length === 3)
    expect(model.left.toSorted()).toEqual(['chat', 'openai', 'run'])
    const seen = other.run.text().length
    await until(() => other.run.text().length > seen + 200 && other.events.text().length > 0)
    expect(model.left).not.toContain('good')
    const { runs } = (await server.ask('/runs')).body as { runs: { prompt: string; code?: string }[] }
    expect(runs.map(({ prompt, code }) => [prompt, code]).toSorted()).toEqual([
      ['chat', 'cancelled'],
      ['good', undefined],
      ['openai', 'cancelled'],
      ['run', 'cancelled'],
    ])
    for (const each of Object.values(other)) each.leave()
    await Promise.allSettled([other.run.ended, other.events.ended])
  },
  60_000,
)

test('a revoked token’s whole answers are 401; what waits in line never begins, and what runs without its client is cancelled', async () => {
  using model = endlessModel()
  using at = home(model.config)
  await using server = await gateway(at, ['--model', 'fake/m'])
  const bad = await tokenOf(at, 'bad', ...scopes)
  const first = await read(server, bad, '/run', { prompt: 'abandoned' })
  await until(() => first.text().includes('-1 '))
  first.leave()
  await first.ended.catch(() => {})
  const { runs } = (await server.ask('/runs')).body as { runs: { conversation_id: string }[] }
  const waiting = [
    read(server, bad, '/chat', { message: 'whole' }),
    read(server, bad, '/chat', { message: 'in line', conversation_id: runs[0]?.conversation_id }),
    read(server, bad, '/run', { prompt: 'in line', conversation_id: runs[0]?.conversation_id }),
    read(server, bad, '/v1/chat/completions', { model: 'braidclaw', messages: [{ role: 'user', content: 'openai' }] }),
  ]
  await until(() => model.asked.length === 3)
  expect((await at.run(['token', 'revoke', 'bad'])).code).toBe(0)
  const answers = await Promise.all((await Promise.all(waiting)).map(async ({ status, ended }) => [status, JSON.parse(await ended)]))
  const error = { error: { code: 'unauthorized', message: expect.stringContaining(refusal) } }
  expect(answers).toEqual([...Array(3).fill([401, error]), [401, openAiError]])
  await until(() => model.left.length === 3)
  expect(model.asked.toSorted()).toEqual(['abandoned', 'openai', 'whole'])
}, 60_000)

test('a question of a revoked token closes without a yes', async () => {
  using at = home('', 'ask = "before"\nunlisted_commands = "ask"\n')
  const { env } = scripted(at, [call('file_write', { path: 'new.txt', content: 'x' }), { text: 'Written.' }])
  await using server = await gateway(at, [], { env })
  const bad = await tokenOf(at, 'bad', '--scope', 'admin')
  const stream = await read(server, bad, '/run', { prompt: 'write' })
  await until(() => stream.text().includes('approval_gate'))
  const [open] = (await server.ask('/approvals')).body.approvals
  expect((await at.run(['token', 'revoke', 'bad'])).code).toBe(0)
  expect(JSON.parse(dataOf(await stream.ended).at(-1) ?? '')).toEqual(agentError)
  await until(async () => (await server.ask('/approvals')).body.approvals.length === 0)
  expect((await server.ask(`/approvals/${open.id}`, { decision: 'allow' })).status).toBe(409)
  expect(await Bun.file(`${at.workspace}/new.txt`).exists()).toBe(false)
}, 60_000)
