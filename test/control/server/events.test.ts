/** The stream of events: numbered, resumable, at the pace of its reader, and over when the credential is. */

import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ControlEvent } from '../../../src/control/contract/activity-shapes.ts'
import { until } from '../../support/until.ts'
import { type ControlUnderTest, controlServer } from '../support/control-server.ts'
import { serve } from './fake-plane.ts'

const open: ControlUnderTest[] = []
afterEach(async () => {
  for (const each of open.splice(0)) await each[Symbol.asyncDispose]()
})
async function started(options: Parameters<typeof controlServer>[0] = {}): Promise<ControlUnderTest> {
  const control = await controlServer(options)
  open.push(control)
  return control
}

function temporary(): Disposable & { readonly home: string } {
  const home = mkdtempSync(join(tmpdir(), 'control-'))
  return { home, [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }) }
}

type Stream = { readonly text: () => string; readonly ended: Promise<void>; readonly status: number }

async function follow({ url }: Pick<ControlUnderTest, 'url'>, headers: Record<string, string>, query = ''): Promise<Stream> {
  const response = await fetch(`${url}/api/controlplane/events${query}`, { headers })
  const read = { text: '' }
  const ended = (async () => {
    const decoder = new TextDecoder()
    for await (const piece of response.body ?? []) read.text += decoder.decode(piece, { stream: true })
  })().catch(() => undefined)
  return { text: () => read.text, ended, status: response.status }
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const idsIn = (text: string) => [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id))

test('events are numbered; a stream resumes after its last id, by header or query, without a gap or a double', async () => {
  const control = await started()
  const client = control.client()
  for (const title of ['one', 'two', 'three', 'four']) await client.tasks.create({ title, role: 'sysadmin' })
  const { events } = await client.events.list({ after: 0, limit: 200 })
  const all = events.map(({ id }) => id)
  const whole = await follow(control, bearer(control.operator), '?after=0')
  const rest = await follow(control, { ...bearer(control.operator), 'last-event-id': String(all[2]) }, '?after=0')
  await until(() => idsIn(whole.text()).length === all.length)
  await client.tasks.create({ title: 'five', role: 'sysadmin' })
  for (const stream of [whole, rest]) await until(() => stream.text().includes('five'))
  expect(idsIn(whole.text()).slice(0, all.length)).toEqual(all)
  expect(idsIn(rest.text())).toEqual(idsIn(whole.text()).slice(3))
  for (const wrong of ['x', '-1', '1.5', '99999999999999999999'])
    expect((await control.ask('events', { headers: { 'last-event-id': wrong } })).status).toBe(400)
})

test('a stream ends when its operator token, session or agent key is revoked', async () => {
  const control = await started()
  const client = control.client()
  const key = await control.addAgent('sysadmin')
  const other = await client.fleet.newOperator('bert')
  const session = await fetch(`${control.url}/session`, {
    method: 'POST',
    body: JSON.stringify({ token: other.token }),
    headers: { 'content-type': 'application/json', origin: control.url },
  })
  const cookie = (session.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
  const streams = await Promise.all([bearer(other.token), { cookie }, bearer(key)].map((headers) => follow(control, headers)))
  const stays = await follow(control, bearer(control.operator))
  expect(streams.map(({ status }) => status)).toEqual([200, 200, 200])
  await client.fleet.revokeOperator(other.id)
  await client.fleet.revokeKey('sysadmin', (await client.fleet.keys('sysadmin'))[0]?.key_id ?? '')
  await Promise.all(streams.map(({ ended }) => ended))
  await client.tasks.create({ title: 'still', role: 'sysadmin' })
  await until(() => stays.text().includes('still'))
  for (const { text } of streams) expect(text()).not.toContain('still')
})

test('a log-out ends its session for good, with its stream; another session of the operator stays, also after a restart', async () => {
  using folder = temporary()
  const { home } = folder
  const first = await controlServer({ home })
  const login = async () => {
    const begun = await first.ask('/session', { body: { token: first.operator }, token: null })
    return (begun.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
  }
  const [one, other] = [await login(), await login()]
  const whoWith = async (cookie: string, at = first) => (await at.ask('/session', { token: null, headers: { cookie } })).status
  const logOut = (cookie: string) => first.ask('/session', { method: 'DELETE', token: null, headers: { cookie, origin: first.url } })
  const [ends, stays] = [await follow(first, { cookie: one }), await follow(first, { cookie: other })]
  expect((await logOut(one.replace(/.$/, (last) => (last === '0' ? '1' : '0')))).status).toBe(200)
  expect(await whoWith(one)).toBe(200)
  expect((await logOut(one)).headers.get('set-cookie')).toContain('Max-Age=0')
  expect([await whoWith(one), await whoWith(other)]).toEqual([401, 200])
  await ends.ended
  await first.client().tasks.create({ title: 'still', role: 'sysadmin' })
  await until(() => stays.text().includes('still'))
  expect(ends.text()).not.toContain('still')
  await first[Symbol.asyncDispose]()
  await using second = await controlServer({ home, port: first.port })
  expect([await whoWith(one, second), await whoWith(other, second)]).toEqual([401, 200])
})

test('an agent hears of its own, and not of others', async () => {
  const control = await started()
  const [ann] = [await control.addAgent('ann'), await control.addAgent('bob')]
  const stream = await follow(control, bearer(ann))
  const client = control.client()
  await client.tasks.create({ title: 'for bob alone', role: 'bob', agent_id: 'bob' })
  await client.tasks.create({ title: 'for ann', role: 'ann', agent_id: 'ann' })
  await client.fleet.pause('ann', 'lunch')
  await until(() => stream.text().includes('lunch'))
  expect(stream.text()).toContain('"agent_id":"ann"')
  expect(stream.text()).not.toContain('bob')
})

test('a quiet stream ends too when its credential is no longer in force', async () => {
  const state = { isRevoked: false }
  await using server = serve({
    access: { callerOf: async () => (state.isRevoked ? undefined : { kind: 'operator', id: 'op1', name: 'anna' }) },
    events: {
      async *follow(_caller, _query, signal) {
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      },
    },
  })
  const stream = await follow(server, bearer('operator'))
  state.isRevoked = true
  await stream.ended
})

const event = (id: number, size: number): ControlEvent => ({
  ...{
    id,
    at: '2026-04-07T10:30:00.000Z',
    type: 'task.created',
    actor: 'operator anna',
    task_id: null,
    run_id: null,
    agent_id: null,
    role: null,
  },
  data: { text: 'x'.repeat(size) },
})

test('a client that does not read holds up nobody: its events wait where they are kept, not in memory', async () => {
  const given = { count: 0 }
  await using server = serve({
    events: {
      async *follow(_caller, _query, signal) {
        for (let id = 1; id <= 2_000 && !signal.aborted; id += 1) {
          given.count = id
          yield event(id, 50_000)
        }
      },
    },
  })
  const lazy = connect(server.port, '127.0.0.1', () =>
    lazy.write(`GET /api/controlplane/events HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nAuthorization: Bearer operator\r\n\r\n`),
  )
  lazy.pause()
  await until(() => given.count > 5)
  await Bun.sleep(600)
  const waited = given.count
  // Of 100 MB not more than the buffers of both sides.
  expect(waited).toBeLessThan(600)
  const seen = { bytes: 0 }
  lazy.on('data', (piece) => {
    seen.bytes += piece.length
  })
  lazy.resume()
  await until(() => given.count === 2_000 && seen.bytes > 100_000_000)
  lazy.destroy()
})

test('when the server stops, streams end', async () => {
  const control = await controlServer()
  const stream = await follow(control, bearer(control.operator))
  await control[Symbol.asyncDispose]()
  await stream.ended
})
