/** A worker whose way to the control plane leads through a proxy that sometimes answers itself: only the control plane's own words end anything. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { type Nest, nest, type Started } from '../../support/cli.ts'
import { needs } from '../../support/needs.ts'
import { until } from '../../support/until.ts'
import { type ControlUnderTest, controlServer } from '../support/control-server.ts'

const state: { plane?: ControlUnderTest; at?: Nest; worker?: Started } = {}
beforeEach(async () => {
  state.plane = await controlServer({ env: { CONTROLPLANE_LEASE_SECONDS: '600' } })
  state.at = nest()
})
afterEach(async () => {
  try {
    if (state.worker) process.kill(state.worker.pid, 'SIGKILL')
  } catch {}
  await state.worker?.result
  state.worker = undefined
  await state.plane?.[Symbol.asyncDispose]()
  state.at?.[Symbol.dispose]()
})

type Interference = () => Response

/** Passes requests on, except while `answer` is set; counts what it answered itself, by route. */
function interferingProxy(target: string) {
  const proxy: { answer: Interference | undefined; answered: string[] } = { answer: undefined, answered: [] }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch({ url, method, headers, body }): Promise<Response> {
      const { pathname, search } = new URL(url)
      if (proxy.answer !== undefined) {
        proxy.answered.push(pathname.split('/').at(-1) ?? '')
        return proxy.answer()
      }
      headers.delete('host')
      return fetch(`${target}${pathname}${search}`, { method, headers, body, redirect: 'manual' })
    },
  })
  return Object.assign(proxy, { url: `http://127.0.0.1:${server.port}`, [Symbol.dispose]: () => void server.stop(true) })
}

const page = (status: number) => () =>
  new Response('<html><title>Sign in</title></html>', { status, headers: { 'content-type': 'text/html' } })
const json = (body: string, status: number) => () => new Response(body, { status, headers: { 'content-type': 'application/json' } })

async function given() {
  const { plane, at } = state
  if (!plane || !at) throw new Error('not open')
  const proxy = interferingProxy(plane.url)
  const key = await plane.addAgent('a1', 'sysadmin')
  const gate = at.file('../open', '')
  const client = plane.client()
  return {
    ...{ proxy, client, plane },
    work(script: string, ...flags: string[]): Started {
      const words = [
        'control',
        'worker',
        '--runner',
        'command',
        '--lease',
        '6',
        '--readable',
        gate,
        ...flags,
        '--',
        '/bin/sh',
        '-c',
        script,
      ]
      state.worker = at.start(words, { env: { CONTROLPLANE_API_URL: proxy.url, CONTROLPLANE_API_KEY: key }, timeoutMs: 200_000 })
      return state.worker
    },
    add: () => client.tasks.create({ title: 'look', role: 'sysadmin' }),
    [Symbol.dispose]: proxy[Symbol.dispose],
  }
}

const done = `echo begun >&2; sleep 1; echo '{"type":"result","ok":true,"output":"done"}'`

describe.if(needs('bwrap', 'socat'))('a proxy that answers for the control plane', () => {
  test('keeps no result from arriving, whatever it says meanwhile', async () => {
    using at = await given()
    const { proxy, client } = at
    const logOf = async (run: string | null | undefined) =>
      run ? Buffer.from((await client.runs.log(run).catch(() => ({ bytes: new Uint8Array() }))).bytes).toString() : ''
    const worker = at.work(done)
    await worker.says('ready')
    const cases: readonly (readonly [string, Interference])[] = [
      ...[200, 401, 404, 407].map((status) => [`a page with ${status}`, page(status)] as const),
      ['an empty answer', json('', 200)],
      ['half an answer', json('{"lease_until":"20', 200)],
      ['a refusal in another form', json('{"error":"denied"}', 403)],
    ]
    for (const [name, answer] of cases) {
      const { task_id } = await at.add()
      await until(async () => (await logOf((await client.tasks.get(task_id)).run_id)).includes('begun'))
      proxy.answer = answer
      const before = proxy.answered.length
      await until(() => proxy.answered.slice(before).filter((route) => /output|deliver|activity/.test(route)).length >= 2)
      proxy.answer = undefined
      const task = await until(async () => {
        const found = await client.tasks.get(task_id)
        return found.status !== 'running' && found
      })
      expect([name, task.status, task.attempt, task.result?.output]).toEqual([name, 'completed', 1, 'done'])
    }
    expect((await client.runs.list({})).runs.map((run) => run.state)).toEqual(Array(cases.length).fill('completed'))
  }, 200_000)

  test('does not end a worker that waits, and the worker says why it waits', async () => {
    using at = await given()
    const { proxy, client } = at
    proxy.answer = page(403)
    const worker = at.work(done, '--once')
    await worker.says('something else answered with status 403 (text/html), not in the form of a control plane')
    const { task_id } = await at.add()
    proxy.answer = undefined
    expect(await worker.result).toMatchObject({ code: 0 })
    expect(await client.tasks.get(task_id)).toMatchObject({ status: 'completed', attempt: 1 })
  }, 60_000)

  test('one refusal in the form of the control plane is no end either, a key that stays refused is', async () => {
    using at = await given()
    const { proxy, plane } = at
    const worker = at.work(done)
    await worker.says('ready')
    const once = json('{"error":{"code":"unauthorized","message":"not yet"}}', 401)
    proxy.answer = () => {
      proxy.answer = undefined
      return once()
    }
    await worker.says('not yet; waiting')
    await worker.says('working again')
    const [key] = (await plane.client().fleet.keys('a1')).slice(-1)
    await plane.client().fleet.revokeKey('a1', key?.key_id ?? '')
    expect(await worker.result).toMatchObject({ code: 3, stderr: expect.stringContaining('refuses the agent "a1"') })
  }, 90_000)
})
