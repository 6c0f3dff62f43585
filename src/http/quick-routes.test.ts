import { expect, test } from 'bun:test'
import { z } from '@hono/zod-openapi'
import { type Api, type ApiEnv, createApi, createFailures, json } from './api.ts'
import { errorResponse, HttpError } from './http-error.ts'
import { createQuickRoutes } from './quick-routes.ts'

type Env = ApiEnv<{ readonly id: string }>['Bindings']

function server(replay: { readonly replay?: 'never' }) {
  const options = { errorOf: () => undefined, failed: () => {} }
  const app: Api<{ readonly id: string }> = createApi(options)
  const quick = createQuickRoutes(app, createFailures(options))
  quick.add({
    config: { path: '/things', responses: { 201: json(z.looseObject({}), 'A thing') } },
    guard: {
      ...{ words: ['maker'], ...replay },
      permit({ id }) {
        if (id !== 'maker') throw new HttpError(403, 'forbidden', 'not you')
      },
    },
    body: z.strictObject({ name: z.string() }),
    asks: 'A name',
    async answer({ name }, { caller }) {
      if (name === 'bug') throw new Error('a bug')
      return { status: 201, body: { name, by: caller.id }, headers: { 'x-made': 'yes' } }
    },
  })
  return { app, quick }
}

function sent(value: unknown, id?: string, headers: Record<string, string> = {}) {
  const body = JSON.stringify(value)
  const env: Env = {
    connection: { address: '', stay: () => {}, disconnected: new AbortController().signal },
    ...{ body, json: value, path: '/things', tokenHint: 'ask', cookie: 'c' },
    sender: async () => (id === undefined ? undefined : { caller: { id }, key: id }),
    isInForce: async () => true,
    idempotency: { answer: async () => errorResponse(new HttpError(409, 'kept', 'the answer of an earlier one')) },
    attempt: async (find) => find(),
  }
  const all = { 'content-type': 'application/json', ...headers }
  return { request: new Request('http://x/things', { method: 'POST', headers: all, body }), env }
}

async function told(response: Response | Promise<Response> | undefined) {
  const found = await response
  return found && { status: found.status, headers: [...found.headers].sort(), text: await found.text() }
}

test('a quick route refuses and answers as the router does', async () => {
  const { app, quick } = server({ replay: 'never' })
  const statuses: (number | undefined)[] = []
  for (const [value, id] of [
    [{ name: 'a' }],
    [{ name: 'a' }, 'guest'],
    [{ name: 1 }, 'maker'],
    [{ name: 'bug' }, 'maker'],
    [{ name: 'a' }, 'maker'],
  ] as const) {
    const [direct, routed] = [sent(value, id), sent(value, id)]
    const answer = await told(quick.answer(direct.request, direct.env))
    expect(answer).toEqual(await told(app.fetch(routed.request, routed.env)))
    statuses.push(answer?.status)
  }
  expect(statuses).toEqual([401, 403, 400, 500, 201])
})

test('what is kept for a repeated request, other paths and other methods are left to the router', async () => {
  const keyed = sent({ name: 'a' }, 'maker', { 'idempotency-key': 'k' })
  expect(server({}).quick.answer(keyed.request, keyed.env)).toBeUndefined()
  expect((await server({}).app.fetch(keyed.request, keyed.env)).status).toBe(409)
  const { quick } = server({ replay: 'never' })
  expect((await quick.answer(keyed.request, keyed.env))?.status).toBe(201)
  const { request, env } = sent({ name: 'a' }, 'maker')
  expect(quick.answer(request, { ...env, path: '/other' })).toBeUndefined()
  expect(quick.answer(new Request('http://x/things'), env)).toBeUndefined()
})
