/** Hostile values in each parameter and each body field of each route: never a failure of ours, and what is refused changes nothing. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { isDeep } from '../../support/tier.ts'
import { filled, type Route, routesOf } from '../server/openapi-routes.ts'
import { type ControlUnderTest, controlServer } from '../support/control-server.ts'
import { hostile as all, exampleOf, variantsOf } from './values.ts'

/** The fast tier tries one of each kind. */
const examples: readonly unknown[] = [
  null,
  -1,
  2 ** 53,
  '',
  'a\0b',
  '../../etc/passwd',
  "x'); DROP TABLE tasks; --",
  '__proto__',
  [null],
  { length: -1 },
]
const hostile = isDeep ? all : [...examples, ...all.filter((value) => typeof value === 'string' && value.length > 60_000)]

const held: { control?: ControlUnderTest; routes?: readonly Route[]; run?: string; agent?: string } = {}
const at = (): ControlUnderTest => {
  if (!held.control) throw new Error('not started')
  return held.control
}

/** Keeps a stream open or a client waiting; tested by itself. */
const left = ['GET /events', 'POST session', 'DELETE session']

beforeAll(async () => {
  held.control = await controlServer({
    tickMs: 3_600_000,
    hostd: { call: async () => ({ ok: true, output: '', exitCode: 0 }), operations: async () => [] },
  })
  const client = at().client()
  held.agent = await at().addAgent('sysadmin')
  await freshRun()
  await at().client(held.run).activity({ event_type: 'approval_request', agent_id: 'sysadmin', operation: 'x' })
  await client.schedules.add({ name: 'daily', cron: '@daily', task: { title: 'x', role: 'sysadmin' } })
  const routes = (await routesOf(at())).filter(({ name }) => !left.includes(name) && !name.includes(' /llm/'))
  // What an operator changes may take the agent's key away, so that comes last.
  held.routes = routes.toSorted((a, b) => Number(a.callers.includes('operator')) - Number(b.callers.includes('operator')))
})
afterAll(() => held.control?.[Symbol.asyncDispose]())

const ids: { [collection: string]: string } = { approvals: 'APPR-001', agents: 'sysadmin', schedules: '1' }

/** A request that is accepted may end the run, so each route of runs gets one of its own. */
async function freshRun(): Promise<void> {
  await at().client().tasks.create({ title: 'one', role: 'sysadmin' })
  const claim = await at().client(held.agent).tasks.claim({ role: 'sysadmin', agent_id: 'sysadmin' })
  if (!claim) throw new Error('there is nothing to claim')
  held.run = claim.run_token
  ids.tasks = claim.task.task_id
  ids.runs = claim.run_id
}

function tokenFor({ callers }: Route): string {
  if (callers.includes('operator')) return at().operator
  return (callers.includes('run') ? held.run : held.agent) ?? ''
}

function pathFor({ path, name }: Route, id?: string): string {
  const [, collection = ''] = /^[A-Z]+ \/(\w+)/.exec(name) ?? []
  return filled(path, { id: id ?? ids[collection] ?? 'x', key: id ?? 'k', keyId: id ?? 'key_x', name: id ?? 'a.txt' })
}

type Sent = { readonly url: string; readonly body?: unknown; readonly headers?: Record<string, string> }

async function send(route: Route, { url, body, headers = {} }: Sent): Promise<number> {
  const response = await fetch(`${at().url}${url}`, {
    method: route.method,
    ...(body === undefined || route.method === 'GET' ? {} : { body: JSON.stringify(body) }),
    headers: { authorization: `Bearer ${tokenFor(route)}`, 'content-type': 'application/json', ...headers },
  })
  const text = await response.text()
  expect([route.name, response.status, text.includes('"internal"') && url]).toEqual([route.name, response.status, false])
  if (response.status >= 400 && text !== '')
    expect(JSON.parse(text)).toMatchObject({ error: { code: expect.any(String), message: expect.any(String) } })
  return response.status
}

/** Everything that changes anything writes an event; logs and session lines do not, so their routes count for themselves. */
const eventId = async () => (await at().ask('activity?limit=1')).body.events[0].id

test('values that a schema does not accept, in each field of each body', async () => {
  const accepted: string[] = []
  for (const route of held.routes ?? []) {
    if (!route.body) continue
    const right = exampleOf(route.body)
    const body = { ...(typeof right === 'object' ? right : {}), wait_ms: 0 }
    const isClaim = route.name === 'POST /tasks/claim'
    const variants = [...variantsOf(isClaim ? body : right, hostile)]
    if (!route.callers.includes('operator')) await freshRun()
    if ((await send(route, { url: pathFor(route), body: isClaim ? body : right })) < 300) accepted.push(route.name)
    const before = await eventId()
    const statuses = await Promise.all(variants.map(({ body }) => send(route, { url: pathFor(route), body })))
    // A budget that is reached blocks the task by name, which is an event.
    const isRefused = statuses.every((status) => status >= 400 && status !== 402)
    if (isRefused) expect([route.name, await eventId()]).toEqual([route.name, before])
    expect([route.name, statuses.filter((status) => status >= 500 && status !== 503)]).toEqual([route.name, []])
  }
  // Else the right value would be wrong, and the hostile ones would never come far.
  expect(accepted.length).toBeGreaterThan(17)
  expect(at().errors).toEqual([])
}, 120_000)

test('hostile ids, queries and headers: never a failure of ours, and a refusal changes nothing', async () => {
  const words = hostile.filter(
    (value) => typeof value === 'string' && value !== '' && value.length < 1_000 && value.isWellFormed(),
  ) as string[]
  for (const route of (held.routes ?? []).filter(({ method }) => method === 'GET' || method === 'POST')) {
    const before = await eventId()
    const asked: Sent[] = []
    if (route.path.includes('{')) for (const word of words) asked.push({ url: pathFor(route, word), body: {} })
    for (const { name, in: place } of route.parameters)
      for (const word of words) {
        if (place === 'query')
          asked.push({ url: `${pathFor(route)}?${new URLSearchParams([[name, word]])}`, body: { no_route_has_this_field: 1 } })
        if (place === 'header' && /^[\x20-\x7e]+$/.test(word))
          asked.push({ url: pathFor(route), body: { no_route_has_this_field: 1 }, headers: { [name]: word } })
      }
    if (route.method === 'POST')
      for (const word of words.filter((each) => /^[\x20-\x7e]+$/.test(each)))
        asked.push({ url: pathFor(route), body: { no_route_has_this_field: 1 }, headers: { 'idempotency-key': word, 'if-match': word } })
    const statuses = await Promise.all(asked.map((each) => send(route, each)))
    if (statuses.every((status) => status >= 400 || route.method === 'GET'))
      expect([route.name, await eventId()]).toEqual([route.name, before])
    expect([route.name, statuses.filter((status) => status >= 500 && status !== 503)]).toEqual([route.name, []])
  }
  expect(at().errors).toEqual([])
}, 120_000)

test('hostile texts that are accepted come back as they were, and the server still serves', async () => {
  const client = at().client()
  for (const text of [
    '\u202e\u2028\u0007\u001b[2J',
    "x'); DROP TABLE tasks; --",
    '<script>alert(1)</script>',
    '$(id)',
    'x\r\nSet-Cookie: a=b',
  ]) {
    const made = await client.tasks.create({ title: text, description: text, role: 'quiet', context: { [text]: text } })
    const found = await client.tasks.get(made.task_id)
    expect([found.title, found.description, found.context]).toEqual([text, text, Object.fromEntries([[text, text]])])
  }
  expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  const { status, headers } = await at().ask('state')
  expect([status, headers.get('x-injected'), headers.get('set-cookie')]).toEqual([200, null, null])
})
