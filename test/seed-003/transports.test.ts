/** The transports of seed 003: lines on stdio, and server-sent events over HTTP; on Bun.serve and hono. */

import { afterAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { Hono } from 'hono'
import { type AgentEvent, createAgent, type ModelCall } from '../../src/agent.ts'
import { httpTransport, stdioTransport } from '../../src/library/stdio/transports.ts'

const dir = mkdtempSync(join(tmpdir(), 'braidclaw-transports-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))

function made(modelCall: ModelCall) {
  const own = mkdtempSync(join(dir, 'agent-'))
  const cwd = join(own, 'workspace')
  mkdirSync(cwd)
  const agent = createAgent({ cwd, home: join(own, 'home'), env: { HOME: own }, modelCall })
  return Object.assign(agent, { [Symbol.asyncDispose]: () => agent.close() })
}

const echo: ModelCall = async function* (messages) {
  const last = messages.at(-1)
  yield { type: 'text', content: `you said ${last?.role === 'user' ? last.content : '?'}` }
}
/** Says words until it is stopped. */
const endless: ModelCall = async function* (_, __, signal) {
  while (!signal.aborted) {
    yield { type: 'text', content: 'word ' }
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const post = (body: string, headers = { 'content-type': 'application/json' }) => ({ method: 'POST', headers, body })
const request = (init: RequestInit) => new Request('http://localhost/run', init)
const eventsOf = (text: string): AgentEvent[] =>
  text
    .trimEnd()
    .split('\n\n')
    .map((frame) => JSON.parse(frame.replace(/^data: /, '')))

describe('stdioTransport', () => {
  test('reads prompts and writes events, one a line, and leaves the agent open', async () => {
    await using agent = made(echo)
    const [input, output] = [new PassThrough(), new PassThrough()]
    input.end('{"prompt":"a"}\n{"prompt":"b"}\n')
    expect(await stdioTransport(agent, { input, output })).toBe('answered')
    output.end()
    const lines = (await new Response(output).text())
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.flatMap(({ result }) => result ?? [])).toEqual(['you said a', 'you said b'])
    for await (const event of agent.run('c')) if (event.type === 'done') expect(event.result).toBe('you said c')
  })

  test('a client with a hello may cancel, and may not bring tools', async () => {
    await using agent = made(endless)
    const [input, output] = [new PassThrough(), new PassThrough()]
    const served = stdioTransport(agent, { input, output })
    input.write('{"hello":{"protocol":1}}\n{"id":"p","prompt":"x"}\n')
    let text = ''
    for await (const piece of output) {
      text += piece
      if (text.includes('"word "')) input.write('{"id":"p","cancel":true}\n')
      if (text.includes('"type":"done"')) break
    }
    expect(text).toContain('"stopReason":"cancelled"')
    input.end()
    await served
    const [other, said] = [new PassThrough(), new PassThrough()]
    other.end('{"hello":{"protocol":1,"tools":[{"name":"a","description":"b","parameters":{"type":"object"}}]}}\n')
    expect(await stdioTransport(agent, { input: other, output: said })).toBe('usage')
    expect(String(said.read())).toContain('leave them out of the hello')
  })

  test('a reader that goes away cancels the turn', async () => {
    await using agent = made(endless)
    const [input, output] = [new PassThrough(), new PassThrough()]
    input.write('{"prompt":"x"}\n')
    const served = stdioTransport(agent, { input, output })
    output.once('data', () => output.destroy())
    expect(await served).toBe('cancelled')
    expect(agent.ending()?.code).toBe('cancelled')
  })
})

describe('httpTransport refuses', () => {
  test.each<[string, RequestInit, number, string]>([
    ['a wrong method', { method: 'GET' }, 405, 'send POST'],
    ['a wrong type', post('{"prompt":"x"}', { 'content-type': 'text/plain' }), 415, 'application/json'],
    ['half a body', post('{"prompt"'), 400, 'not JSON'],
    ['an empty body', post(''), 400, '"prompt" is'],
    ['a prompt that is no text', post('{"prompt":1}'), 400, '"prompt" is number'],
    ['an unknown member', post('{"promt":"x"}'), 400, 'did you mean'],
    ['a list', post('[]'), 400, '"prompt" is'],
    ['invalid UTF-8', { ...post(''), body: new Uint8Array([0x22, 0xff, 0x22]) }, 400, 'UTF-8'],
    ['2 MB', post(`{"prompt":"${'x'.repeat(2_000_000)}"}`), 413, 'larger than'],
  ])('%s', async (_, init, status, message) => {
    await using agent = made(echo)
    const response = await httpTransport(agent).fetch(request(init))
    expect(response.status).toBe(status)
    expect(await response.text()).toContain(message.replaceAll('"', '\\"'))
    expect(agent.runId()).toBeUndefined()
  })

  test('a second prompt while one runs, with the error `busy`', async () => {
    await using agent = made(endless)
    const { fetch } = httpTransport(agent)
    const first = (await fetch(request(post('{"prompt":"x"}')))).body?.getReader()
    await first?.read()
    const second = eventsOf(await (await fetch(request(post('{"prompt":"y"}')))).text())
    expect(second).toMatchObject([
      { type: 'error', code: 'busy' },
      { type: 'done', stopReason: 'error' },
    ])
    await first?.cancel()
    expect(agent.ending()?.code).toBe('cancelled')
  })
})

describe('httpTransport answers', () => {
  test('under Bun.serve, with one frame for each event', async () => {
    await using agent = made(echo)
    const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: httpTransport(agent).fetch })
    const response = await fetch(server.url, post('{"prompt":"Hello"}'))
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const events = eventsOf(await response.text())
    expect(events.map(({ type }) => type)).toEqual(['init', 'text', 'text', 'done'])
    expect(events.at(-1)).toMatchObject({ result: 'you said Hello' })
    await server.stop(true)
  })

  test('a client that goes away cancels the turn', async () => {
    await using agent = made(endless)
    const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: httpTransport(agent).fetch })
    const leave = new AbortController()
    const response = await fetch(server.url, { ...post('{"prompt":"x"}'), signal: leave.signal })
    await response.body?.getReader().read()
    leave.abort()
    const { until } = await import('../support/until.ts')
    expect(await until(() => agent.ending()?.code)).toBe('cancelled')
    await server.stop(true)
  })

  test('in hono', async () => {
    await using agent = made(echo)
    const app = new Hono().post('/run', (context) => httpTransport(agent).fetch(context.req.raw))
    expect(eventsOf(await (await app.request('/run', post('{"prompt":"x"}'))).text()).at(-1)).toMatchObject({ result: 'you said x' })
  })
})
