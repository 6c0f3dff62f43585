/** The pass-through counts what models cost, on each of the three APIs, and stops runs that may not go on. */

import { afterEach, describe, expect, test } from 'bun:test'
import { dialects, upTo } from '../../support/dialects.ts'
import { until } from '../../support/until.ts'
import { sends, startCutter } from '../../support/vendor-fake.ts'
import { type Metered, startMetered, vendorKey } from './metered-server.ts'

const running: { stop(): void }[] = []
afterEach(() => {
  for (const one of running.splice(0)) one.stop()
})

function started(...given: Parameters<typeof startMetered>): Metered {
  const metered = startMetered(...given)
  running.push(metered)
  return metered
}

const hello = { text: ['Hel', 'lo'] }
const bodies: { readonly [path: string]: object } = {
  '/chat/completions': { model: 'm', messages: [{ role: 'user', content: 'hi' }] },
  '/messages': { model: 'm', max_tokens: 1000, messages: [{ role: 'user', content: 'hi' }] },
  '/responses': { model: 'm', input: 'hi' },
}
const bodyOf = (path: string) => bodies[path] ?? {}
const isAnthropic = (path: string) => path === '/messages'

type Said = { readonly type?: string; readonly error: { readonly type: string; readonly code?: string; readonly message: string } }

function said(text: string): Said {
  return JSON.parse(text)
}

/** The text of an error, wherever the vendor puts it. */
async function errorOf(response: Response): Promise<Said['error']> {
  return said(await response.text()).error
}

describe.each(dialects.map((dialect) => [dialect.path, dialect] as const))('POST %s', (path, dialect) => {
  test('a wrong token, an agent’s key and no token are refused in the vendor’s shape, and nobody is asked', async () => {
    const { post, vendor } = started(() => new Response(dialect.whole(hello)))
    const answers = [
      await post(path, bodyOf(path), { authorization: 'Bearer cpr_wrong' }),
      await post(path, bodyOf(path), { 'x-api-key': 'cpa_agent' }),
      await post(path, bodyOf(path), {}),
    ]
    expect(answers.map(({ status }) => status)).toEqual([401, 403, 401])
    const bodies = await Promise.all(answers.map(async (answer) => said(await answer.text())))
    expect(bodies.map(({ type }) => type)).toEqual(Array(3).fill(isAnthropic(path) ? 'error' : undefined))
    expect(bodies.map(({ error }) => error.type)).toEqual(['authentication_error', 'permission_error', 'authentication_error'])
    expect(vendor.asked).toEqual([])
  })

  test('a document is passed on as it is, with the vendor’s key, and costs what it says', async () => {
    const { post, vendor, plane } = started(() => new Response(dialect.whole(hello), { headers: { 'content-type': 'application/json' } }))
    const answer = await post(path, bodyOf(path), { 'x-api-key': 'cpr_test' })
    expect(await answer.text()).toBe(dialect.whole(hello))
    expect(plane.settled).toEqual([120])
    expect(plane.state.reserved).toBe(0)
    const [asked] = vendor.asked
    expect(asked?.path).toBe(`/v1${path}`)
    expect(isAnthropic(path) ? asked?.headers.get('x-api-key') : asked?.headers.get('authorization')).toContain(vendorKey)
    expect(JSON.stringify([...(asked?.headers ?? [])])).not.toContain('cpr_test')
  })

  test('a stream arrives event by event, unchanged, and is settled before its end', async () => {
    const events = dialect.events(hello)
    const { post, plane } = started(() => sends(events, 'close', 5))
    const answer = await post(path, { ...bodyOf(path), stream: true, stream_options: { include_usage: true } })
    expect(answer.headers.get('content-type')).toContain('text/event-stream')
    expect(await answer.text()).toBe(events.join(''))
    expect(plane.settled).toEqual([120])
    expect(plane.state.reserved).toBe(0)
  })

  test('who has the last event may ask again: it is settled by then, also when the vendor keeps the connection open', async () => {
    const events = dialect.events(hello)
    const { post, plane } = started(() => sends(events, 'hold'))
    const answer = await post(path, { ...bodyOf(path), stream: true, stream_options: { include_usage: true } })
    const reader = answer.body?.getReader()
    for (let text = ''; !text.includes(events.at(-1) ?? ''); ) text += new TextDecoder().decode((await reader?.read())?.value)
    expect(plane.settled).toEqual([120])
    expect(plane.state.reserved).toBe(0)
  })

  test('a stream cut at any byte is counted all the same', async () => {
    const bytes = new TextEncoder().encode(dialect.events({ text: ['é日本', 'x'] }).join(''))
    const pieces = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, n) => bytes.subarray(n * 7, n * 7 + 7))
    const { post, plane } = started(() => sends(pieces))
    const answer = await post(path, { ...bodyOf(path), stream: true, stream_options: { include_usage: true } })
    expect(new Uint8Array(await answer.arrayBuffer())).toEqual(bytes)
    expect(plane.settled).toEqual([120])
  })

  test('a stream that breaks costs at least what was seen, and ends with an error event', async () => {
    const cutter = startCutter(upTo(dialect, 'Hel'), 100)
    running.push(cutter)
    const { post, plane } = started(() => new Response(''), { upstream: cutter.url })
    const answer = await post(path, { ...bodyOf(path), stream: true })
    const text = await answer.text()
    expect(text).toContain('"Hel"')
    expect(plane.settled.length).toBe(1)
    expect(plane.settled[0]).toBeGreaterThanOrEqual(isAnthropic(path) ? 101 : 2)
    expect(plane.state.reserved).toBe(0)
  })

  test('a budget that is gone refuses in the vendor’s shape, with a status that no client repeats', async () => {
    const { post, vendor } = started(() => new Response(dialect.whole(hello)), { limit: 100 })
    const answer = await post(path, bodyOf(path))
    expect(answer.status).toBe(402)
    expect(answer.headers.get('x-should-retry')).toBe('false')
    const error = await errorOf(answer)
    expect(error.type).toBe(isAnthropic(path) ? 'billing_error' : 'insufficient_quota')
    if (!isAnthropic(path)) expect(error.code).toBe('budget_exceeded')
    expect(vendor.asked).toEqual([])
  })

  test('with little left the answer is limited to what the budget allows', async () => {
    const { post, vendor, plane } = started(() => new Response(dialect.whole(hello)), { limit: 700 })
    const answer = await post(path, bodyOf(path))
    expect(answer.status).toBe(200)
    const sent = JSON.parse(vendor.asked[0]?.text ?? '{}')
    const limit = sent.max_tokens ?? sent.max_output_tokens
    expect(limit).toBeGreaterThanOrEqual(256)
    expect(limit).toBeLessThan(700)
    expect(plane.reservedSums).toEqual([700])
  })

  test('a run that loses its lease, or is cancelled, ends soon; the vendor’s connection is closed and counted', async () => {
    for (const lose of [(metered: Metered) => Object.assign(metered.plane.state, { token: 'other' }), cancel, takeOver]) {
      const metered = started(() => sends(upTo(dialect, 'Hel'), 'hold'))
      const answer = await metered.post(path, { ...bodyOf(path), stream: true })
      const reader = (answer.body ?? new ReadableStream()).getReader()
      await reader.read()
      lose(metered)
      let rest = ''
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) rest += new TextDecoder().decode(piece.value)
      await metered.vendor.hungUp
      expect(rest).toMatch(/TASK-001 is cancelled|not in force|no longer holds/)
      expect(metered.plane.settled.length).toBe(1)
      expect((await metered.post(path, bodyOf(path))).status).toBeOneOf([401, 409])
    }
  })

  test('a client that goes away ends the call, which is counted', async () => {
    const { vendor, plane, url } = started(() => sends(upTo(dialect, 'Hel'), 'hold'))
    const gone = new AbortController()
    const answer = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { authorization: 'Bearer cpr_test', 'content-type': 'application/json' },
      body: JSON.stringify({ ...bodyOf(path), stream: true }),
      signal: gone.signal,
    })
    await answer.body?.getReader().read()
    gone.abort()
    await vendor.hungUp
    await until(() => plane.settled.length > 0)
    expect(plane.settled.length).toBe(1)
  })

  test('an error of the vendor is passed on and costs nothing; a refused key is not shown', async () => {
    const status = { now: 400 }
    const { post, plane } = started(
      () => new Response(dialect.errorBody('bad', `wrong field ${vendorKey}`), { status: status.now, headers: { 'retry-after': '7' } }),
    )
    const wrong = await post(path, bodyOf(path))
    expect([wrong.status, wrong.headers.get('retry-after')]).toEqual([400, '7'])
    expect(await wrong.text()).toContain('wrong field [REDACTED]')
    status.now = 401
    const key = await post(path, bodyOf(path))
    expect(key.status).toBe(502)
    expect((await errorOf(key)).message).toContain('refused the key of the control plane')
    expect([plane.settled, plane.state.reserved]).toEqual([[], 0])
  })

  test.each([
    [
      '<!doctype html><style>x{}</style><h1>502 Bad\u202e Gateway</h1><p>nginx',
      'text/html',
      /answered 503: 502 Bad\\u\{202e\} Gateway nginx$/,
    ],
    [`<html>${'so long '.repeat(1_000)}${vendorKey}`, 'text/html', /answered 503: so long .*\[cut: /],
    ['upstream connect error', 'text/plain', /answered 503: upstream connect error$/],
    ['', 'application/json', /answered 503 without a text$/],
  ])('a refusal by something in between is an error in the vendor’s shape (%#)', async (text, type, says) => {
    const headers = { 'content-type': type, 'retry-after': '7' }
    const { post, plane } = started(() => new Response(text, { status: 503, headers }))
    const answer = await post(path, bodyOf(path))
    const names = ['content-type', 'retry-after', 'x-should-retry'].map((name) => answer.headers.get(name))
    expect([answer.status, ...names]).toEqual([503, expect.stringMatching(/^application\/json/), '7', null])
    const { message } = await errorOf(answer)
    expect(message).toMatch(says)
    expect(message.length).toBeLessThan(500)
    expect(message).not.toContain(vendorKey)
    expect([plane.settled, plane.state.reserved]).toEqual([[], 0])
  })

  test('a page in place of an answer is an error, also for a stream', async () => {
    const { post } = started(() => new Response('<html><title>Log in</title>', { headers: { 'content-type': 'text/html' } }))
    const answer = await post(path, { ...bodyOf(path), stream: true })
    expect([answer.status, (await errorOf(answer)).message]).toEqual([502, expect.stringContaining('answered 200: Log in')])
  })

  test('without an upstream the answer says which variable is missing', async () => {
    const { post } = started(() => new Response(''), { vendors: [] })
    const answer = await post(path, bodyOf(path))
    expect(answer.status).toBe(503)
    expect((await errorOf(answer)).message).toContain(isAnthropic(path) ? 'CONTROLPLANE_ANTHROPIC_KEY' : 'CONTROLPLANE_OPENAI_KEY')
  })

  test('a vendor that cannot be reached is a 502 and costs nothing', async () => {
    const metered = started(() => new Response(''))
    metered.vendor.stop()
    const answer = await metered.post(path, bodyOf(path))
    expect(answer.status).toBe(502)
    expect([metered.plane.settled, metered.plane.state.reserved]).toEqual([[], 0])
  })
})

function cancel({ plane }: Metered): void {
  plane.state.cancelled = true
}

function takeOver({ plane }: Metered): void {
  plane.state.runId = 'RUN-002'
}

test('a page in place of the list of models is an error in the vendor’s shape', async () => {
  const { url } = started(() => new Response('<h1>Not found</h1>', { status: 404, headers: { 'content-type': 'text/html' } }))
  const answer = await fetch(`${url}/models`, { headers: { authorization: 'Bearer cpr_test' } })
  expect([answer.status, (await errorOf(answer)).message]).toEqual([404, expect.stringContaining('answered 404: Not found')])
})
