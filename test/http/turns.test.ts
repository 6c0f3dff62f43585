/** Turns over HTTP: streams, disconnects, the line of a conversation, many conversations at once, and what a stop leaves. */

import { expect, test } from 'bun:test'
import { connect } from 'node:net'
import { type Gateway, gateway, tokenOf } from '../support/gateway.ts'
import { repetitions } from '../support/tier.ts'
import { call, home, scripted } from '../support/turns.ts'

type Sent = { readonly events: { readonly type: string; readonly [key: string]: unknown }[]; readonly response: Response }

/** Reads a stream to its end. */
async function stream(server: Gateway, body: object, headers: Record<string, string> = {}): Promise<Sent> {
  const response = await fetch(`${server.url}/run`, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json', ...headers },
  })
  const text = await response.text()
  return { response, events: text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [JSON.parse(line.slice(6))] : [])) }
}

/** Answers slowly: `delay` ms before each of the given replies. */
const slow = (delay: number, ...texts: string[]) => texts.map((text) => ({ text, delay_ms: delay, chunks: 5 }))

test('POST /run streams the events of the turn, ends with done, and is found again as a run', async () => {
  using at = home()
  at.file('a.txt', 'hello')
  const { env } = scripted(at, [call('file_read', { path: 'a.txt' }), { text: 'Read.' }])
  await using server = await gateway(at, [], { env })
  const { response, events } = await stream(server, { prompt: 'read a.txt' })
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  expect(events.filter(({ type }) => type !== 'text').map(({ type }) => type)).toEqual(['init', 'tool_use', 'tool_result', 'done'])
  expect(events.at(-1)).toMatchObject({ type: 'done', stopReason: 'end_turn', result: 'Read.' })
  const run = await server.ask(`/runs/${events[0]?.runId}`)
  expect([run.status, run.body.conversation_id, run.body.code]).toEqual([200, response.headers.get('x-conversation-id'), 'answered'])
  expect(run.body.steps.find(({ type }: { type: string }) => type === 'call')).toMatchObject({
    tool: 'file_read',
    verdict: 'allow',
    receipt: expect.any(String),
  })
  expect((await server.ask(`/conversations/${run.body.conversation_id}`)).body.messages.map(({ role }: { role: string }) => role)).toEqual([
    'user',
    'assistant',
    'tool',
    'assistant',
  ])
})

test('POST /chat streams the events of /run when Accept or the body wants that, and the body decides', async () => {
  using at = home()
  await using server = await gateway(at)
  const typeOf = async (accept: string, body: object = {}) => {
    const response = await fetch(`${server.url}/chat`, {
      method: 'POST',
      body: JSON.stringify({ message: 'hi', ...body }),
      headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json', accept },
    })
    const text = await response.text()
    return [response.headers.get('content-type'), /data: \{"type":"init".*data: \{"type":"done"/s.test(text)]
  }
  const [whole, events] = [
    ['application/json', false],
    ['text/event-stream; charset=utf-8', true],
  ]
  for (const accept of ['*/*', 'application/json', 'application/json, text/event-stream']) expect(await typeOf(accept)).toEqual(whole)
  for (const accept of ['text/event-stream', 'Text/Event-Stream; q=1, */*;q=0.1']) expect(await typeOf(accept)).toEqual(events)
  expect(await typeOf('text/event-stream', { stream: false })).toEqual(whole)
  expect(await typeOf('application/json', { stream: true })).toEqual(events)
})

test('a client that goes away leaves its turn running, or cancels it when it asked for that', async () => {
  using at = home()
  const { env } = scripted(at, [...slow(600, 'First.'), ...slow(5_000, 'Second.')])
  await using server = await gateway(at, [], { env })
  const leave = (on_disconnect: string, prompt: string) => {
    const body = JSON.stringify({ prompt, on_disconnect })
    const socket = connect(server.port, '127.0.0.1', () =>
      socket.write(
        `POST /run HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nAuthorization: Bearer ${server.token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      ),
    )
    return new Promise<void>((resolve) => socket.on('data', () => resolve())).then(() => void socket.destroy())
  }
  const ended = async (prompt: string) => {
    for (let tries = 0; tries < 100; tries++) {
      const { body } = await server.ask('/runs')
      const done = body.runs.filter((run: { ended?: number }) => run.ended !== undefined)
      if (done.length >= Number(prompt)) return done[0].code
      await Bun.sleep(50)
    }
  }
  await leave('continue', 'one')
  expect(await ended('1')).toBe('answered')
  await leave('cancel', 'two')
  expect(await ended('2')).toBe('cancelled')
})

test('a run can be cancelled by its id, once', async () => {
  using at = home()
  const { env } = scripted(at, slow(8_000, 'Late.'))
  await using server = await gateway(at, [], { env })
  const running = stream(server, { prompt: 'wait' })
  const id = await (async () => {
    for (;;) {
      const { body } = await server.ask('/runs')
      if (body.runs.length > 0) return body.runs[0].id
      await Bun.sleep(20)
    }
  })()
  expect((await server.ask('/runs/run_00000000/cancel', {})).status).toBe(404)
  expect((await server.ask(`/runs/${id}/cancel`, {})).body).toEqual({ run_id: id, cancelled: true })
  expect((await running).events.at(-1)).toMatchObject({ type: 'done', stopReason: 'cancelled' })
  expect((await server.ask(`/runs/${id}/cancel`, {})).status).toBe(404)
})

test('messages to a busy conversation wait their turn in order, and beyond a limit they are refused', async () => {
  using at = home()
  const replies = Array.from({ length: 20 }, (_, number) => ({ text: `answer ${number}`, delay_ms: number === 0 ? 2_000 : 5 }))
  const { env } = scripted(at, [{ text: 'begun' }, ...replies])
  await using server = await gateway(at, [], { env })
  const { body } = await server.ask('/chat', { message: 'begin' })
  const order: string[] = []
  const sent = []
  for (let number = 0; number < 20; number++) {
    sent.push(
      server.ask('/chat', { message: `question ${number}`, conversation_id: body.conversation_id }).then((answer) => {
        order.push(answer.body.text ?? answer.body.error.code)
        return answer
      }),
    )
    await Bun.sleep(5)
  }
  const answers = await Promise.all(sent)
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array(17).fill(200), ...Array(3).fill(429)])
  expect(answers.find(({ status }) => status === 429)?.headers.get('retry-after')).toBe('5')
  expect(order.filter((text) => text.startsWith('answer'))).toEqual(Array.from({ length: 17 }, (_, number) => `answer ${number}`))
})

const many = repetitions({ fast: 48, deep: 256 })

test(`16 and ${many} conversations at once get their own answers`, async () => {
  using at = home()
  await using server = await gateway(at)
  for (const count of [16, many]) {
    const answers = await Promise.all(
      Array.from({ length: count }, (_, number) => server.ask('/chat', { message: `echo the word w${count}x${number}z` })),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(new Set(answers.map(({ body }) => body.conversation_id)).size).toBe(count)
    const found = await Promise.all(
      answers.slice(0, 16).map(async ({ body }, number) => {
        const { messages } = (await server.ask(`/conversations/${body.conversation_id}`)).body
        return messages.length === 2 && messages[0].content.includes(`w${count}x${number}z`)
      }),
    )
    expect(found).toEqual(Array(16).fill(true))
  }
}, 120_000)

test('a refused call is 200 and says so; a call that needs a yes is 202, and the yes over HTTP counts', async () => {
  using at = home('', 'ask = "before"\nunlisted_commands = "ask"\n')
  const write = call('file_write', { path: 'new.txt', content: 'x' })
  const { env } = scripted(at, [
    call('shell', { command: 'rm -rf /' }),
    { text: 'Done.' },
    write,
    { text: 'I wait.' },
    write,
    { text: 'Written.' },
  ])
  await using server = await gateway(at, [], { env })
  const denied = await server.ask('/chat', { message: 'delete' })
  expect([denied.status, denied.body.ending.code, denied.body.text]).toEqual([200, 'denied', 'Done.'])
  const asked = await server.ask('/chat', { message: 'write', conversation_id: denied.body.conversation_id })
  expect([asked.status, asked.body.ending.code, asked.body.approvals.length]).toEqual([202, 'approval_needed', 1])
  const [id] = asked.body.approvals
  const reader = await tokenOf(at, 'reader', '--scope', 'read', '--scope', 'chat', '--memory', 'all')
  const path = `/approvals/${encodeURIComponent(id)}`
  expect((await server.ask(path, { decision: 'allow' }, { headers: { authorization: `Bearer ${reader}` } })).status).toBe(403)
  expect((await server.ask(path)).body).toMatchObject({ id, state: 'open', tool: 'file_write' })
  expect((await server.ask('/approvals')).body.approvals.map((each: { id: string }) => each.id)).toContain(id)
  expect((await server.ask(path, { decision: 'allow' })).body.state).toMatch(/allowed|used/)
  expect((await server.ask(path, { decision: 'deny' })).status).toBe(409)
})

test.each([
  ['answered', { path: 'a.txt' }],
  ['denied', { path: '.ssh/id_rsa' }],
])('an open question is 202 also when the turn goes on and ends with %s', async (code, read) => {
  using at = home('', 'ask = "before"\nunlisted_commands = "ask"\n')
  at.file('a.txt', 'hello')
  const { env } = scripted(at, [call('file_write', { path: 'new.txt', content: 'x' }), call('file_read', read), { text: 'I went on.' }])
  await using server = await gateway(at, [], { env })
  const chat = await server.ask('/chat', { message: 'write' })
  expect([chat.status, chat.body.ending.code, chat.body.approvals.length]).toEqual([202, code, 1])
})

test('a turn that waits in a stream goes on when somebody says yes', async () => {
  using at = home('', 'ask = "before"\nunlisted_commands = "ask"\n')
  const { env } = scripted(at, [call('file_write', { path: 'new.txt', content: 'x' }), { text: 'Written.' }])
  await using server = await gateway(at, [], { env })
  const running = stream(server, { prompt: 'write' })
  const open = await (async () => {
    for (;;) {
      const { body } = await server.ask('/approvals')
      if (body.approvals.length > 0) return body.approvals[0].id
      await Bun.sleep(20)
    }
  })()
  expect((await server.ask(`/approvals/${open}`, { decision: 'allow' })).status).toBe(200)
  const { events } = await running
  expect(events.map(({ type }) => type)).toContain('approval_gate')
  expect(events.at(-1)).toMatchObject({ stopReason: 'end_turn', result: 'Written.' })
  expect(await Bun.file(`${at.workspace}/new.txt`).text()).toBe('x')
})

test('SIGTERM ends turns within five seconds, and the next turn of the conversation is told', async () => {
  using at = home()
  const { env } = scripted(at, slow(30_000, 'Never.'))
  await using server = await gateway(at, [], { env })
  const running = stream(server, { prompt: 'wait' })
  await server.says('conversation started')
  await Bun.sleep(200)
  const begun = performance.now()
  const { code } = await server.stop()
  expect(performance.now() - begun).toBeLessThan(5_000)
  expect(code).toBe(0)
  const { events, response } = await running
  expect(events.at(-1)).toMatchObject({ type: 'done', stopReason: 'cancelled' })
  const shown = await at.run(['memory', 'show', response.headers.get('x-conversation-id') ?? '', '--json'])
  expect(shown.stdout).toContain('wait')
  expect((await at.run(['run', 'list', '--json'])).stdout).toContain('SIGTERM')
}, 120_000)
