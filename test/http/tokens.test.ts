/** Who may: names, scopes, limits, memory, folders, the token file, rotation and the session of a browser. */

import { expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Gateway, gateway, tokenOf } from '../support/gateway.ts'
import { call, home, refused, scripted } from '../support/turns.ts'
import { until } from '../support/until.ts'

const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

test('every route but /health, the session and the description wants a token, and the scope that it names', async () => {
  using at = home()
  await using server = await gateway(at)
  const { body } = await server.ask('/openapi.json')
  const none = await tokenOf(at, 'approver', '--scope', 'approve')
  const routes = Object.entries<object>(body.paths).flatMap(([path, methods]) =>
    Object.entries<{ security: { bearer: string[] }[] }>(methods as never).map(([method, { security }]) => ({
      path,
      method,
      scope: security[0]?.bearer[0],
    })),
  )
  expect(routes.length).toBeGreaterThan(25)
  expect(
    routes
      .filter(({ scope }) => scope === undefined)
      .map(({ method, path }) => `${method} ${path}`)
      .sort(),
  ).toEqual(['delete /session', 'get /health', 'get /openapi.json', 'post /session'].sort())
  for (const { path, method, scope } of routes.filter(({ scope }) => scope !== undefined)) {
    const url = `${server.url}${path.replaceAll(/\{\w+\}/g, 'run_1')}`
    const init = { method: method.toUpperCase(), ...(method === 'get' ? {} : { body: '{}' }) }
    const headers = { 'content-type': 'application/json' }
    expect([method, path, (await fetch(url, { ...init, headers })).status]).toEqual([method, path, 401])
    const wrong = await fetch(url, { ...init, headers: { ...headers, ...as(none).headers } })
    if (scope !== 'approve' && scope !== '') expect([method, path, wrong.status]).toEqual([method, path, 403])
  }
}, 120_000)

test('a chat token is readonly with two tools and a memory of its own; an admin token has the rights of the operator', async () => {
  using at = home()
  const write = call('file_write', { path: 'new.txt', content: 'x' })
  const { env } = scripted(at, [write, { text: 'No.' }, write, { text: 'Yes.' }])
  await using server = await gateway(at, ['--auto'], { env })
  const bot = await tokenOf(at, 'bot')
  const one = await server.ask('/chat', { message: 'write' }, as(bot))
  expect([one.status, one.body.ending.code]).toEqual([200, 'denied'])
  const tools = (await server.ask('/tools', undefined, as(bot))).body.filter(({ active }: { active: boolean }) => active)
  expect(tools.map(({ name }: { name: string }) => name).sort()).toEqual(['memory_search', 'time'])
  const two = await server.ask('/chat', { message: 'write' })
  expect([two.body.ending.code, readFileSync(join(at.workspace, 'new.txt'), 'utf8')]).toEqual(['answered', 'x'])
})

test('the conversations of a token with a memory of its own are invisible to other tokens', async () => {
  using at = home()
  await using server = await gateway(at)
  const [one, other] = [
    await tokenOf(at, 'one', '--scope', 'chat', '--scope', 'read', '--scope', 'approve'),
    await tokenOf(at, 'other', '--scope', 'chat', '--scope', 'read', '--scope', 'approve'),
  ]
  const { body } = await server.ask('/chat', { message: 'the secret word is xylophone' }, as(one))
  const { conversation_id: id, run_id: run } = body
  const requests: readonly (readonly [string, object?, RequestInit?])[] = [
    [`/conversations/${id}`],
    [`/conversations/${id}`, { title: 'mine' }, { method: 'PATCH' }],
    [`/conversations/${id}`, undefined, { method: 'DELETE' }],
    [`/runs/${run}`],
    [`/runs/${run}/undo`, {}],
    [`/runs/${run}/cancel`, {}],
    [`/runs?conversation_id=${id}`],
    [`/events?conversation_id=${id}`],
    [`/changes/${run}/call_1`],
    [`/approvals/${run}/call_1`],
    ['/chat', { message: 'go on', conversation_id: id }],
    ['/run', { prompt: 'go on', conversation_id: id }],
  ]
  for (const [path, sent, init] of requests)
    expect([path, (await server.ask(path, sent, { ...init, ...as(other) })).status]).toEqual([path, 404])
  const lists = ['/conversations', '/runs', '/memory/search?q=xylophone', '/receipts', '/approvals'] as const
  for (const path of lists)
    expect([path, JSON.stringify((await server.ask(path, undefined, as(other))).body)]).toEqual([path, expect.not.stringContaining(id)])
  expect((await server.ask('/memory/search?q=xylophone', undefined, as(one))).body.results[0].conversation_id).toBe(id)
  expect((await server.ask('/conversations', undefined, as(one))).body.conversations.map((each: { id: string }) => each.id)).toEqual([id])
  expect((await server.ask('/chat', { message: 'and?', conversation_id: id }, as(one))).body.conversation_id).toBe(id)
  expect((await server.ask(`/conversations/${id}`)).status).toBe(200)
}, 120_000)

test('a token may have its own tools, level and folder, and never more than [channels.http] names', async () => {
  using at = home('[channels.http]\ntools_allow = ["file_read", "file_write"]\nautonomy = "supervised"\n')
  const folder = join(at.dir, 'other')
  mkdirSync(folder)
  writeFileSync(join(folder, 'a.txt'), 'elsewhere')
  const read = call('file_read', { path: 'a.txt' })
  const { env } = scripted(at, [read, { text: 'Read.' }, call('shell', { command: 'ls' }), { text: 'No shell.' }])
  await using server = await gateway(at, [], { env })
  const ci = await tokenOf(at, 'ci', '--tools', 'file_read,shell', '--autonomy', 'full', '--folder', folder)
  const { body } = await server.ask('/chat', { message: 'read' }, as(ci))
  expect([body.ending.code, body.tool_calls[0].status]).toEqual(['answered', 'completed'])
  const shell = await server.ask('/chat', { message: 'shell' }, as(ci))
  expect(shell.body.ending.code).toBe('denied')
})

test('a rotated token keeps its conversations, and the old secret and its sessions end at once', async () => {
  using at = home()
  await using server = await gateway(at)
  const old = await tokenOf(at, 'bot')
  const { body } = await server.ask('/chat', { message: 'hi' }, as(old))
  const cookie = await login(server, old)
  const fresh = (await at.run(['token', 'rotate', 'bot'])).stdout.trim()
  expect((await server.ask('/session', undefined, as(old))).status).toBe(401)
  expect((await withCookie(server, '/session', cookie)).status).toBe(401)
  expect((await server.ask(`/conversations/${body.conversation_id}`, undefined, as(fresh))).status).toBe(200)
})

test('a session holds no secret, is for the own page alone, and survives a restart', async () => {
  using at = home()
  const first = await gateway(at)
  const cookie = await login(first, first.token)
  expect(cookie).not.toContain(first.token.split('_')[2] ?? '')
  const origin = { origin: first.url }
  const chat = (headers: Record<string, string>) =>
    withCookie(first, '/chat', cookie, {
      method: 'POST',
      body: '{"message":"hi"}',
      headers: { 'content-type': 'application/json', ...headers },
    })
  expect((await withCookie(first, '/status', cookie)).status).toBe(200)
  expect((await chat({})).status).toBe(403)
  expect((await chat({ origin: 'http://evil.example' })).status).toBe(403)
  expect((await chat(origin)).status).toBe(200)
  const [id = '', expires = '', nonce = '', seal = ''] = cookie.split('=').slice(1).join('=').split('.')
  const name = cookie.split('=')[0]
  for (const forged of [
    `${id}.${expires}.${nonce}.${'0'.repeat(64)}`,
    `${id}.zzzzzzzz.${nonce}.${seal}`,
    `file.${expires}.${nonce}.${seal}`,
    `${id}.${expires}.${nonce}`,
    '',
  ])
    expect((await withCookie(first, '/status', `${name}=${forged}`)).status).toBe(401)
  expect(
    (await fetch(`${first.url}/session`, { method: 'POST', body: '{"token":"wrong"}', headers: { 'content-type': 'application/json' } }))
      .status,
  ).toBe(401)
  await first.stop()
  await using second = await gateway(at, ['--port', String(first.port)], { token: first.token })
  expect((await withCookie(second, '/status', cookie)).status).toBe(200)
}, 120_000)

test('a log-out ends its session for good, with what it reads; its turn continues, and other sessions stay', async () => {
  using at = home()
  const { env } = scripted(at, [{ text: 'slow answer', delay_ms: 3_000 }])
  const first = await gateway(at, [], { env })
  const [one, other] = [await login(first, first.token), await login(first, first.token)]
  const json = { 'content-type': 'application/json', origin: first.url }
  const logOut = (cookie: string) => withCookie(first, '/session', cookie, { method: 'DELETE', headers: { origin: first.url } })
  const events = await Promise.all([one, other].map((cookie) => withCookie(first, '/events', cookie)))
  const talk = withCookie(first, '/chat', one, { method: 'POST', body: '{"message":"hi"}', headers: json })
  await until(async () => (await first.ask('/runs')).body.runs.length === 1)
  const forged = one.replace(/.$/, (last) => (last === '0' ? '1' : '0'))
  expect((await logOut(forged)).status).toBe(200)
  expect((await withCookie(first, '/status', one)).status).toBe(200)
  expect((await logOut(one)).headers.get('set-cookie')).toContain('=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0')
  expect((await withCookie(first, '/status', one)).status).toBe(401)
  expect((await talk).status).toBe(401)
  expect((await events[0]?.text())?.trimEnd().split('\n').at(-1)).toContain('"reason":"unauthorized"')
  await until(async () => (await first.ask('/runs')).body.runs[0].code === 'answered')
  expect((await withCookie(first, '/status', other)).status).toBe(200)
  await first.stop()
  expect(await events[1]?.text()).toContain('run_ended')
  await using second = await gateway(at, ['--port', String(first.port)], { token: first.token })
  expect((await withCookie(second, '/status', one)).status).toBe(401)
  expect((await withCookie(second, '/status', other)).status).toBe(200)
}, 60_000)

test('the token file is one more admin token, read again when it changes, and refused when it is open or empty', async () => {
  using at = home()
  const path = join(at.dir, 'token')
  const write = (text: string) => writeFileSync(path, text, { mode: 0o600 })
  for (const [text, mode, says] of [
    ['', 0o600, 'is empty'],
    ['short\n', 0o600, 'must hold one token of 22'],
    [`${'a'.repeat(30)}\n`, 0o644, 'can be read by others'],
    [`${'a'.repeat(15)} ${'a'.repeat(15)}`, 0o600, 'must hold one token'],
  ] as const) {
    write(text)
    chmodSync(path, mode)
    refused(await at.run(['serve', '--port', '0', '--token-file', path]), 1, says)
  }
  chmodSync(path, 0o600)
  refused(await at.run(['serve', '--port', '0', '--token-file', `${path}x`]), 1, 'does not exist')
  write(`${'a'.repeat(30)}\n`)
  await using server = await gateway(at, ['--token-file', path])
  expect((await server.ask('/session', undefined, as('a'.repeat(30)))).body).toEqual({ name: 'token file', scopes: ['admin'] })
  write(`${'b'.repeat(30)}\n`)
  expect((await server.ask('/session', undefined, as('a'.repeat(30)))).status).toBe(401)
  expect((await server.ask('/session', undefined, as('b'.repeat(30)))).status).toBe(200)
  write('')
  expect((await server.ask('/session', undefined, as('b'.repeat(30)))).status).toBe(401)
}, 120_000)

test('names of tokens are plain and unique; only digests are stored', async () => {
  using at = home()
  refused(await at.run(['token', 'new', 'a b']), 2, 'letters, digits')
  const secret = await tokenOf(at, 'bot')
  refused(await at.run(['token', 'new', 'bot']), 1, 'braidclaw token rotate bot')
  refused(await at.run(['token', 'revoke', 'nobody']), 1, 'braidclaw token list')
  expect(JSON.parse((await at.run(['token', 'list', '--json'])).stdout)).toMatchObject([{ name: 'bot', scopes: ['read', 'chat'] }])
  for (const file of ['memory.sqlite', 'memory.sqlite-wal']) {
    const bytes = readFileSync(join(at.home, '.braidclaw', file), { flag: 'a+' })
    expect(bytes.includes(secret.split('_')[2] ?? 'none')).toBe(false)
  }
})

async function login(server: Gateway, token: string): Promise<string> {
  const response = await fetch(`${server.url}/session`, {
    method: 'POST',
    body: JSON.stringify({ token }),
    headers: { 'content-type': 'application/json' },
  })
  const set = response.headers.get('set-cookie') ?? ''
  expect(set).toMatch(/; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+$/)
  return set.split(';')[0] ?? ''
}

function withCookie(
  server: Gateway,
  path: string,
  cookie: string,
  { headers, ...init }: RequestInit & { headers?: Record<string, string> } = {},
): Promise<Response> {
  return fetch(`${server.url}${path}`, { ...init, headers: { cookie, ...headers } })
}

test('a revoked token hears nothing more: its stream of events ends with the next one', async () => {
  using at = home()
  const token = await tokenOf(at, 'watcher')
  await using server = await gateway(at)
  const response = await fetch(`${server.url}/events`, { headers: { authorization: `Bearer ${token}` } })
  expect(response.status).toBe(200)
  expect((await at.run(['token', 'revoke', 'watcher'])).code).toBe(0)
  await Bun.sleep(1_000)
  await server.ask('/estop', { reason: 'secret reason' })
  expect(await response.text()).not.toContain('secret reason')
})
