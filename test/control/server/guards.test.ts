/** Requests that no honest client sends, byte by byte: foreign hosts and pages, doubled headers, bodies of the wrong kind; and the browser's session. */

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Caller } from '../../../src/control/contract/caller.ts'
import { rawRequest, sendRaw } from '../../support/raw-http.ts'
import { type ControlUnderTest, controlServer } from '../support/control-server.ts'
import { serve } from './fake-plane.ts'

const held: { control?: ControlUnderTest } = {}
beforeAll(async () => {
  held.control = await controlServer({ allowedHosts: ['control.example'] })
})
afterAll(() => held.control?.[Symbol.asyncDispose]())
const at = (): ControlUnderTest => {
  if (!held.control) throw new Error('not started')
  return held.control
}

const usual = () => [`Host: 127.0.0.1:${at().port}`, `Authorization: Bearer ${at().operator}`]
const json = 'Content-Type: application/json'
const send = (line: string, headers: readonly string[], body = '') => sendRaw(at().port, rawRequest(`${line} HTTP/1.1`, headers, body))
const state = 'GET /api/controlplane/state'
const tasks = 'POST /api/controlplane/tasks'
const codeOf = async (answer: ReturnType<typeof send>) => {
  const { status, body } = await answer
  return [status, body === '' ? '' : JSON.parse(body).error?.code]
}

test('a rebound or foreign name of the host is refused, the named one passes', async () => {
  for (const host of ['evil.example', `evil.example:${at().port}`, '127.0.0.1', `127.0.0.1:${at().port + 1}`])
    expect(await codeOf(send(state, [`Host: ${host}`, ...usual().slice(1)]))).toEqual([403, 'foreign_host'])
  expect((await send(state, [`Host: evil.example`, ...usual().slice(1)])).body).toContain('--allow-host')
  for (const host of ['control.example', `localhost:${at().port}`, `[::1]:${at().port}`])
    expect((await send(state, [`Host: ${host}`, ...usual().slice(1)])).status).toBe(200)
})

test('pages of other sites are refused, and get no permission from us', async () => {
  for (const header of ['Origin: http://evil.example', 'Origin: null', 'Sec-Fetch-Site: cross-site', 'Sec-Fetch-Site: same-site']) {
    const answer = await send(state, [...usual(), header])
    expect([answer.status, /access-control/i.test(answer.head)]).toEqual([403, false])
  }
  expect((await send(state, [...usual(), `Origin: http://127.0.0.1:${at().port}`])).status).toBe(200)
})

test('headers that were sent twice fail safely', async () => {
  const [host = '', token = ''] = usual()
  for (const headers of [
    [host, 'Host: evil.example', token],
    ['Host: evil.example', host, token],
    [host, token, 'Authorization: Bearer other'],
    [host, 'Authorization: Bearer other', token],
    [host, token, token],
  ])
    expect([400, 401, 403]).toContain((await send(state, headers)).status)
  const keyed = [...usual(), json, 'Idempotency-Key: a', 'Idempotency-Key: b']
  expect((await send(tasks, keyed, '{"title":"x","role":"r"}')).status).toBe(400)
  const both = [
    `${tasks} HTTP/1.1`,
    ...usual(),
    json,
    'Content-Length: 4',
    'Transfer-Encoding: chunked',
    '',
    '0\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n',
  ]
  expect((await sendRaw(at().port, both.join('\r\n'), { ms: 1_000 })).status).not.toBe(201)
})

test('a body of another type, size or shape is refused, and without a credential it is not even read', async () => {
  const body = '{"title":"x","role":"r"}'
  expect(await codeOf(send(tasks, [...usual(), 'Content-Type: text/plain'], body))).toEqual([415, 'not_json'])
  expect(await codeOf(send(tasks, [...usual(), json, 'Content-Encoding: gzip'], body))).toEqual([415, 'compressed_body'])
  for (const broken of ['{', '{"title":NaN}', '[1,]', '\u0000'])
    expect(await codeOf(send(tasks, [...usual(), json], broken))).toEqual([400, 'bad_json'])
  expect(await codeOf(send(tasks, [...usual(), json], `{"context":${'{"a":'.repeat(100)}1${'}'.repeat(101)}`))).toEqual([400, 'too_deep'])
  for (const text of [
    '{"title":"a\\u0000b","role":"r"}',
    '{"title":"\\ud800","role":"r"}',
    '{"title":"x","role":"r","context":{"\\u0000":1}}',
  ])
    expect(await codeOf(send(tasks, [...usual(), json], text))).toEqual([400, 'bad_text'])
  expect(await codeOf(send('GET /api/controlplane/approvals?agent_id=a%00b', usual()))).toEqual([400, 'bad_path'])
  const long = `{"title":"x","role":"r","description":"${'a'.repeat(4_200_000)}"}`
  expect(await codeOf(send(tasks, [...usual(), json], long))).toEqual([413, 'too_large'])
  const [host = ''] = usual()
  expect(await codeOf(send(tasks, [host, json], `{"title":"${'a'.repeat(70_000)}"}`))).toEqual([413, 'too_large'])
  // Its declared bytes never come: the wrong secret is answered at once.
  const waiting = rawRequest(`${tasks} HTTP/1.1`, [host, 'Authorization: Bearer cpo_wrong', json, 'Content-Length: 4000000'])
  expect((await sendRaw(at().port, waiting)).status).toBe(401)
})

test('paths that some programs read in another way than others are refused', async () => {
  for (const path of ['//api/controlplane/state', '/api/controlplane//state', '/api/controlplane/state%00'])
    expect(await codeOf(send(`GET ${path}`, usual()))).toEqual([400, 'bad_path'])
  for (const path of ['/api/controlplane/%2e%2e/metrics', '/api/controlplane/state/'])
    expect((await send(`GET ${path}`, usual())).status).toBe(404)
  expect(await codeOf(send('GET /api/controlplane/nothing', usual()))).toEqual([404, 'not_found'])
  const wrong = await send('DELETE /api/controlplane/state', usual())
  expect([wrong.status, /allow: get/i.test(wrong.head)]).toEqual([405, true])
})

test('a session of a browser: for operators alone, for its own page alone, and over with its token', async () => {
  const client = at().client()
  const key = await at().addAgent('sysadmin')
  const login = (token: string) => at().ask('/session', { body: { token }, token: null })
  for (const token of [key, at().sharedSecret, 'cpo_wrong']) expect((await login(token)).status).toBe(401)
  const bert = await client.fleet.newOperator('bert')
  const begun = await login(bert.token)
  const set = begun.headers.get('set-cookie') ?? ''
  expect([begun.status, begun.body.name, set.includes(bert.token)]).toEqual([200, 'bert', false])
  expect(set).toMatch(/^braidclaw_control_\d+=.*; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+$/)
  const cookie = set.split(';')[0] ?? ''
  const origin = { origin: at().url }
  const as = (headers: Record<string, string>, body?: object) =>
    at().ask(body ? 'tasks' : 'agents', { token: null, headers: { cookie, ...headers }, ...(body ? { body } : {}) })
  const draft = { title: 'by the page', role: 'sysadmin' }
  expect((await as({})).status).toBe(200)
  expect((await as({}, draft)).status).toBe(403)
  expect((await as({ origin: 'http://evil.example' }, draft)).status).toBe(403)
  expect([(await as(origin, draft)).status, (await as(origin, draft)).body.created_by]).toEqual([201, 'operator bert'])
  const [name = '', value = ''] = cookie.split('=')
  const parts = value.split('.')
  for (const forged of [
    `${parts.slice(0, 3).join('.')}.${'0'.repeat(64)}`,
    `op_x.${parts.slice(1).join('.')}`,
    parts.slice(0, 3).join('.'),
    '',
  ])
    expect((await at().ask('agents', { token: null, headers: { cookie: `${name}=${forged}` } })).status).toBe(401)
  await client.fleet.revokeOperator(bert.id)
  expect((await as({})).status).toBe(401)
})

test('health needs nobody and says little; metrics and the page are served', async () => {
  const health = await fetch(`${at().url}/health`)
  expect([health.status, await health.json()]).toEqual([200, { ok: true, version: expect.any(String), kind: 'control' }])
  const looked = await fetch(`${at().url}/health`, { method: 'HEAD' })
  expect([looked.status, await looked.text()]).toEqual([200, ''])
  const metrics = await at().ask('/metrics')
  expect(metrics.headers.get('content-type')).toStartWith('text/plain; version=0.0.4')
  for (const line of [
    '# TYPE braidclaw_control_http_responses_total counter',
    'braidclaw_control_http_responses_total{status="200"} ',
    'braidclaw_control_waiting_claims 0',
  ])
    expect(metrics.text).toContain(line)
  const page = await fetch(`${at().url}/`)
  expect([page.status, page.headers.get('content-security-policy')?.includes("script-src 'self'")]).toEqual([200, true])
  expect(at().errors).toEqual([])
}, 120_000)

test('what somebody else broke in the database is answered without its text, and the log says what it is', async () => {
  await using control = await controlServer()
  const database = new Database(join(control.home, 'control/control.sqlite'))
  database.run(`INSERT INTO settings (name, value) VALUES ('budget', '{"daily_tokens":"many","allocation":{},"timezone":"UTC"}')`)
  database.close()
  const broken = await control.ask('budget')
  expect([broken.status, broken.text.includes('daily_tokens')]).toEqual([500, false])
  expect(control.errors.join()).toContain('daily_tokens')
})

test('many wrong secrets are slowed down, and the right one still passes', async () => {
  const statuses = await Promise.all(Array.from({ length: 120 }, () => at().ask('state', { token: 'cpo_wrong' })))
  expect(new Set(statuses.map(({ status }) => status))).toEqual(new Set([401, 429]))
  expect((await at().ask('state')).status).toBe(200)
})

test('an agent that reports and reports is slowed down with a sentence, its completions and operators are not', async () => {
  const done: string[] = []
  const parts = {
    activity: async ({ kind }: Caller, { event_type: type }: { readonly event_type: string }) => {
      done.push(`${kind} ${type}`)
      return { ok: true, activity_id: 1, task_id: null, approval_id: null, escalation_task_id: null } as const
    },
    runs: { addSession: async ({ kind }: Caller) => void done.push(`${kind} session`) },
  }
  await using server = serve(parts, { now: () => 1_000_000 })
  const fails = { event_type: 'error', agent_id: 'sysadmin', error_message: 'again' }
  const ends = { event_type: 'task_completed', task_id: 'TASK-001', agent_id: 'sysadmin', result: { status: 'ok' } }
  const post = (body: object, token: string, path = 'activity') => server.ask(path, { method: 'POST', body: JSON.stringify(body), token })
  const line = { timestamp: '', task: '', skill: '', outcome: '', tokens_used: 0 }
  const flood = async (body: object, path?: string) => {
    const answers = []
    for (let at = 0; at < 1_020; at += 60)
      answers.push(...(await Promise.all(Array.from({ length: 60 }, () => post(body, at % 120 === 0 ? 'agent' : 'run', path)))))
    const refused = answers.filter(({ status }) => status === 429)
    return [refused.length, JSON.parse((await refused[0]?.text()) ?? '{}').error?.message]
  }
  const sentence = 'sysadmin reports more than 20 times a second; try again in 1 s'
  expect(await flood(fails)).toEqual([20, sentence])
  expect(await flood(line, 'agents/sysadmin/sessions')).toEqual([20, sentence])
  expect([(await post(ends, 'agent')).status, (await post(fails, 'operator')).status]).toEqual([200, 200])
  expect(done.slice(-2)).toEqual(['agent task_completed', 'operator error'])
})
