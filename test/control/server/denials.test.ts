/** Every route of the document × every kind of credential: who may is written here once more, so that a new route without a row fails. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Claim } from '../../../src/control/contract/task-shapes.ts'
import { type ControlUnderTest, controlServer } from '../support/control-server.ts'
import { filled, type Route, routesOf } from './openapi-routes.ts'

/** o: operator, a: agent, r: run, s: the shared secret; a capital A or R: only for its own `{id}`. */
const mayUse: { readonly [route: string]: string } = {
  'GET /state': 'oars',
  'GET /tasks': 'oars',
  'GET /approvals': 'oars',
  'POST /hostd': 'oars',
  'POST /activity': 'oars',
  'POST /tasks': 'oa',
  'POST /tasks/batch': 'oa',
  'GET /tasks/{id}': 'oAR',
  'PATCH /tasks/{id}': 'o',
  'POST /tasks/claim': 'oa',
  'POST /tasks/{id}/beat': 'R',
  'POST /tasks/{id}/release': 'R',
  'POST /tasks/{id}/cancel': 'o',
  'POST /tasks/{id}/retry': 'o',
  'POST /tasks/{id}/resolve': 'o',
  'GET /tasks/{id}/effects': 'oAR',
  'POST /tasks/{id}/effects': 'R',
  'POST /tasks/{id}/effects/done': 'R',
  'POST /tasks/{id}/effects/{key}/done': 'R',
  'GET /approvals/{id}': 'oAR',
  'POST /approvals/{id}/decision': 'o',
  'POST /approvals/{id}/use': 'AR',
  'GET /activity': 'oa',
  'GET /events': 'oa',
  'GET /budget': 'o',
  'GET /budget/ledger': 'o',
  'PUT /budget': 'o',
  'POST /budget/reserve': 'r',
  'POST /budget/settle': 'r',
  'POST /llm/v1/chat/completions': 'r',
  'POST /llm/v1/responses': 'r',
  'POST /llm/v1/messages': 'r',
  'POST /llm/v1/messages/count_tokens': 'r',
  'GET /llm/v1/models': 'r',
  'GET /whoami': 'oar',
  'GET /agents': 'o',
  'POST /agents': 'o',
  'GET /agents/{id}': 'oAR',
  'PATCH /agents/{id}': 'o',
  'DELETE /agents/{id}': 'o',
  'POST /agents/{id}/pause': 'o',
  'POST /agents/{id}/resume': 'o',
  'POST /agents/{id}/wake': 'o',
  'POST /agents/{id}/report': 'A',
  'GET /agents/{id}/keys': 'o',
  'POST /agents/{id}/keys': 'o',
  'POST /agents/{id}/keys/rotate': 'o',
  'DELETE /agents/{id}/keys/{keyId}': 'o',
  'GET /agents/{id}/sessions': 'oAR',
  'POST /agents/{id}/sessions': 'AR',
  'GET /runs': 'oa',
  'GET /runs/{id}': 'oAR',
  'POST /runs/{id}/deliver': 'oAR',
  'GET /runs/{id}/log': 'oAR',
  'POST /runs/{id}/log': 'AR',
  'GET /runs/{id}/artifacts/{name}': 'oAR',
  'PUT /runs/{id}/artifacts/{name}': 'AR',
  'GET /schedules': 'o',
  'POST /schedules': 'o',
  'POST /schedules/{id}/enable': 'o',
  'POST /schedules/{id}/disable': 'o',
  'DELETE /schedules/{id}': 'o',
  'GET /operators': 'o',
  'POST /operators': 'o',
  'DELETE /operators/{id}': 'o',
  'GET /receipts/status': 'o',
  'GET /hostd/ops': 'oar',
  'GET session': 'o',
  'GET metrics': 'o',
  'GET openapi.json': 'o',
}
const open = ['DELETE session', 'POST session']

type Setting = {
  readonly control: ControlUnderTest
  readonly routes: readonly Route[]
  readonly tokens: { readonly [who: string]: string }
  readonly ids: { readonly [collection: string]: string }
}
const held: { setting?: Setting } = {}

function at(): Setting {
  if (!held.setting) throw new Error('not started')
  return held.setting
}

beforeAll(async () => {
  const clock = { back: 0 }
  // Nothing but requests may write an event.
  const control = await controlServer({ now: () => Date.now() - clock.back, tickMs: 3_600_000 })
  const client = control.client()
  const keys: { [id: string]: string } = {}
  for (const id of ['ann', 'bob', 'old']) keys[id] = await control.addAgent(id)
  const claimFor = async (id: string): Promise<Claim> => {
    await client.tasks.create({ title: id, role: id })
    const claimed = await control.client(keys[id]).tasks.claim({ role: id, agent_id: id, lease_s: 50 })
    if (!claimed) throw new Error(`nothing for ${id}`)
    return claimed
  }
  clock.back = 120_000
  const old = await claimFor('old')
  clock.back = 0
  const [ann, bob] = [await claimFor('ann'), await claimFor('bob')]
  const asked = await control.client(ann.run_token).activity({ event_type: 'approval_request', agent_id: 'ann', operation: 'x' })
  const second = await client.tasks.create({ title: 'second', role: 'ann' })
  const again = await control.client(keys.ann).tasks.claim({ role: 'ann', agent_id: 'ann' })
  if (!again || again.task.task_id !== second.task_id) throw new Error('no second task')
  held.setting = {
    control,
    routes: await routesOf(control),
    tokens: {
      operator: control.operator,
      agent: keys.ann ?? '',
      'foreign agent': keys.bob ?? '',
      run: again.run_token,
      'foreign run': bob.run_token,
      'expired run': old.run_token,
      seed: control.sharedSecret,
      'wrong secret': 'cpo_nobody-has-this-secret',
    },
    ids: {
      tasks: again.task.task_id,
      runs: again.run_id,
      agents: 'ann',
      approvals: asked.approval_id ?? '',
      schedules: '1',
      operators: 'op_x',
    },
  }
})
afterAll(() => held.setting?.control[Symbol.asyncDispose]())

/** With a body that no route accepts: whoever may use the route is answered 400, and nothing happens. */
async function statusOf({ method, path, name }: Route, token: string | null): Promise<number> {
  const { control, ids } = at()
  const [, collection = ''] = /^[A-Z]+ \/(\w+)/.exec(name) ?? []
  const url = filled(path, { id: method === 'DELETE' ? 'nobody_there' : (ids[collection] ?? 'x'), key: 'k', keyId: 'key_x', name: 'a.txt' })
  const leaving = new AbortController()
  const response = await fetch(`${control.url}${url}`, {
    method,
    signal: leaving.signal,
    ...(method === 'GET' || method === 'DELETE' ? {} : { body: '{"no_route_has_this_field":1}' }),
    headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), 'content-type': 'application/json' },
  })
  if (path.endsWith('/events')) leaving.abort()
  else await response.arrayBuffer()
  return response.status
}

const letters: { readonly [who: string]: readonly string[] } = {
  operator: ['o'],
  agent: ['a', 'A'],
  'foreign agent': ['a'],
  run: ['r', 'R'],
  'foreign run': ['r'],
  'expired run': [],
  seed: ['s'],
  'wrong secret': [],
}
const eventCount = async () => (await at().control.ask('activity?limit=1')).body.events[0].id

test('the document names exactly the routes of the table, and who may use each', () => {
  const { routes } = at()
  const closed = routes.filter(({ callers }) => callers.length > 0)
  expect(
    routes
      .filter(({ callers }) => callers.length === 0)
      .map(({ name }) => name)
      .sort(),
  ).toEqual(open)
  expect(
    closed
      .map(({ name }) => name)

      .sort(),
  ).toEqual(Object.keys(mayUse).sort())
  const words: { readonly [letter: string]: string } = { o: 'operator', a: 'agent', r: 'run', s: 'seed' }
  for (const { name, callers } of closed)
    expect([name, [...callers].sort()]).toEqual([name, [...(mayUse[name] ?? '')].map((letter) => words[letter.toLowerCase()] ?? '').sort()])
})

test('without a credential every route but the session answers 401', async () => {
  for (const route of at().routes.filter(({ callers }) => callers.length > 0))
    expect([route.name, await statusOf(route, null)]).toEqual([route.name, 401])
})

for (const who of ['wrong secret', 'expired run', 'seed', 'foreign run', 'foreign agent', 'run', 'agent'])
  test(`who may not: ${who}`, async () => {
    const before = await eventCount()
    for (const route of at().routes.filter(({ callers }) => callers.length > 0)) {
      const isAllowed = letters[who]?.some((letter) => mayUse[route.name]?.includes(letter))
      if (isAllowed) continue
      const status = await statusOf(route, at().tokens[who] ?? '')
      const expected =
        who === 'wrong secret' ? [401, 429] : who === 'expired run' ? [401, 409] : [403, 404, ...(/ \/llm\//.test(route.name) ? [401] : [])]
      // A foreign agent may ask, and is told that the thing is not its own.
      const isRefused = expected.includes(status) || (/^foreign/.test(who) && status === 400 && mayReach(route, who))
      expect([route.name, isRefused ? 'refused' : status]).toEqual([route.name, 'refused'])
    }
    expect(await eventCount()).toBe(before)
  }, 120_000)

/** Where the plane itself decides which things of others somebody sees, the body is judged before that. */
function mayReach({ name, method }: Route, who: string): boolean {
  if (method === 'GET') return false
  if (who === 'foreign run') return name.includes(' /approvals/')
  return !name.includes(' /agents/') && (mayUse[name] ?? '').includes('A')
}

for (const who of ['operator', 'agent', 'run', 'seed'])
  test(`who may: ${who}`, async () => {
    for (const route of at().routes.filter(({ name }) => letters[who]?.some((letter) => mayUse[name]?.includes(letter)))) {
      const status = await statusOf(route, at().tokens[who] ?? '')
      expect([route.name, [401, 403, 405, 500].includes(status) ? status : 'passes']).toEqual([route.name, 'passes'])
    }
    expect(at().control.errors).toEqual([])
  }, 120_000)

test('no token of an agent or a run passes a route of operators, also not spelled in another way', async () => {
  const { control, tokens } = at()
  const spellings = [
    '/api/controlplane/agents',
    '/api/controlplane/agents/',
    '/API/controlplane/agents',
    '/api/controlplane/./agents',
    '/api/controlplane/x/../agents',
    '/api/controlplane//agents',
    '/api/controlplane/%61gents',
  ]
  for (const path of spellings)
    for (const who of ['agent', 'run', 'seed']) {
      const { status } = await control.ask(path, { token: tokens[who] ?? '' })
      expect([path, who, status === 200]).toEqual([path, who, false])
    }
  const others: Record<string, string>[] = [
    { 'x-http-method-override': 'GET' },
    { 'x-original-url': '/api/controlplane/agents' },
    { cookie: `braidclaw_control_${control.port}=${tokens.operator}` },
  ]
  for (const headers of others) expect((await control.ask('agents', { token: tokens.run ?? '', headers })).status).toBe(403)
})
