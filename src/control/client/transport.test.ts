import { expect, test } from 'bun:test'
import { createTransport } from './transport.ts'

type WireStep = Response | Error

/** Answers in order; counts what was sent, and how long the client wanted to wait. */
function wire(...steps: WireStep[]) {
  const sent: { method: string; url: string; headers: Headers; body: string }[] = []
  const waits: number[] = []
  const fetch = Object.assign(
    async (url: string | URL | Request, init: RequestInit = {}) => {
      sent.push({ method: init.method ?? '', url: String(url), headers: new Headers(init.headers), body: String(init.body) })
      const step = steps.shift() ?? new Error('nothing more')
      if (step instanceof Error) throw step
      return step
    },
    { preconnect: () => {} },
  )
  const sleep = async (ms: number) => void waits.push(ms)
  return { sent, waits, transport: createTransport({ url: 'http://127.0.0.1:1/', token: () => 't', fetch, sleep, random: () => 0.5 }) }
}
const refused = () => Object.assign(new Error('connection refused'), { code: 'ECONNREFUSED' })
const fine = () => Response.json({ a: 1 })
const busy = () => Response.json({ error: { code: 'unavailable', message: 'later', retry_after_ms: 7 } }, { status: 503 })

test('what may be repeated is sent again after a broken connection and a busy server, with growing pauses', async () => {
  const { transport, sent, waits } = wire(refused(), refused(), busy(), fine())
  expect(await transport.json<object>({ method: 'GET', path: 'state', query: { a: 'b c', none: undefined } })).toEqual({ a: 1 })
  expect(sent.map(({ url }) => url)).toEqual(Array(4).fill('http://127.0.0.1:1/api/controlplane/state?a=b+c'))
  expect(sent[0]?.headers.get('authorization')).toBe('Bearer t')
  expect(waits).toEqual([100, 200, 7])
})

test('a post without a key is sent once, and so is what was refused', async () => {
  const once = wire(refused(), fine())
  await expect(once.transport.json({ method: 'POST', path: 'tasks/claim', body: {} })).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('http://127.0.0.1:1/ cannot be reached: nothing listens there'),
  })
  expect(once.sent).toHaveLength(1)
  const again = wire(refused(), fine())
  expect(await again.transport.json<object>({ method: 'POST', path: 'tasks', body: {}, repeatable: true })).toEqual({ a: 1 })
  const lost = wire(Response.json({ error: { code: 'lease_lost', message: 'stop', details: { run: 'RUN-001' } } }, { status: 409 }), fine())
  await expect(lost.transport.json({ method: 'GET', path: 'x' })).rejects.toMatchObject({ code: 'lease_lost', details: { run: 'RUN-001' } })
  expect(lost.sent).toHaveLength(1)
})

test('a text that no database keeps is made into one, unless it is to stay as it is', async () => {
  const { transport, sent } = wire(fine(), fine())
  const body = { error: 'a\0b\ud800', list: ['c\0'] }
  await transport.json({ method: 'POST', path: 'x', body })
  await transport.json({ method: 'POST', path: 'x', body, anyText: true })
  expect(sent.map((each) => JSON.parse(each.body))).toEqual([{ error: 'a\ufffdb\ufffd', list: ['c\ufffd'] }, body])
})

test('it gives up after some tries, and at once when its caller leaves', async () => {
  const down = wire(...Array.from({ length: 9 }, refused))
  await expect(down.transport.json({ method: 'GET', path: 'x' })).rejects.toMatchObject({ code: 'unavailable' })
  expect(down.sent).toHaveLength(4)
  const leaving = new AbortController()
  leaving.abort()
  const left = wire(refused(), fine())
  await expect(left.transport.json({ method: 'GET', path: 'x', signal: leaving.signal })).rejects.toThrow('connection refused')
  expect(left.sent).toHaveLength(1)
})

test('what a proxy, a portal or another server answers is never a refusal, and is repeated', async () => {
  const page = (status: number, body: string | null = '<html>') => new Response(body, { status, headers: { 'content-type': 'text/html' } })
  const json = (body: string, status = 200) => new Response(body, { status, headers: { 'content-type': 'application/json' } })
  const foreign = [
    ...[200, 301, 302, 400, 401, 402, 403, 404, 405, 407, 408, 409, 410, 418, 422, 429, 451, 500, 502, 503, 504, 511].map((status) =>
      page(status),
    ),
    ...[page(403, null), json(''), json('{"a":'), json('null'), json('[]'), json('"ok"'), json('<html>'), new Response('fine')],
    ...[
      json('{}', 401),
      json('{"error":"denied"}', 401),
      json('{"error":{"message":"m"}}', 403),
      json('{"error":{"code":404,"message":"m"}}', 404),
    ],
    ...[
      json('{"error":{"code":"AccessDenied","message":"m"}}', 403),
      json('{"error":{"code":"forbidden"}}', 403),
      json('{"error":{"code":', 401),
    ],
  ]
  for (const answer of foreign) {
    const { status } = answer
    const { transport, sent } = wire(answer, fine())
    expect([status, await transport.json<object>({ method: 'GET', path: 'x' })]).toEqual([status, { a: 1 }])
    expect(sent).toHaveLength(2)
  }
  const alone = wire(page(401)).transport.json({ method: 'POST', path: 'x' })
  await expect(alone).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringMatching(/cannot be reached: something else answered with status 401 \(text\/html\)/),
  })
  const patient = new Response('', { status: 503, headers: { 'retry-after': '86400' } })
  await expect(wire(patient).transport.json({ method: 'POST', path: 'x' })).rejects.toMatchObject({ details: { retry_after_ms: 60_000 } })
})

test("codes of the HTTP layer itself become the plane's, and a limit of size in between is told as one", async () => {
  const cases: readonly (readonly [Response, object])[] = [
    [Response.json({ error: { code: 'bad_json', message: 'm' } }, { status: 400 }), { code: 'bad_request', message: 'm' }],
    [Response.json({ error: { code: 'key_reused', message: 'm' } }, { status: 422 }), { code: 'idempotency_mismatch' }],
    [
      Response.json({ error: { code: 'too_many_requests', message: 'm' } }, { status: 429, headers: { 'retry-after': '3' } }),
      { code: 'too_many', details: { retry_after_ms: 3_000 } },
    ],
    [
      Response.json({ error: { code: 'in_progress', message: 'm' } }, { status: 409, headers: { 'retry-after': '2' } }),
      { code: 'unavailable' },
    ],
    [new Response('<html>', { status: 413 }), { code: 'too_large', message: expect.stringContaining('413') }],
    [new Response('', { status: 418 }), { code: 'unavailable' }],
  ]
  for (const [answer, expected] of cases)
    await expect(wire(answer).transport.json({ method: 'POST', path: 'x' })).rejects.toMatchObject(expected)
  expect(await wire(new Response(null, { status: 204 })).transport.json<unknown>({ method: 'POST', path: 'x' })).toBeUndefined()
})
