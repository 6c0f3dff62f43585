/** A claim that waits: it ends with its client and with the server, and a task is never given to a client that has gone. */

import { expect, test } from 'bun:test'
import type { Caller } from '../../../src/control/contract/caller.ts'
import type { Claim, Task } from '../../../src/control/contract/task-shapes.ts'
import { rawRequest, sendRaw } from '../../support/raw-http.ts'
import { until } from '../../support/until.ts'
import { serve } from './fake-plane.ts'

const task = { task_id: 'TASK-001', role: 'sysadmin' } as Task
const claimed: Claim = { task, run_id: 'RUN-001', attempt: 1, lease_until: '', run_token: 'cpr_x' }
const body = JSON.stringify({ role: 'sysadmin', agent_id: 'sysadmin', wait_ms: 20_000 })
const claim = { method: 'POST', body, token: 'agent' }
const aborted = (signal: AbortSignal) =>
  new Promise<undefined>((resolve) => signal.addEventListener('abort', () => resolve(undefined), { once: true }))

test('a client that leaves ends its wait at once', async () => {
  const [asking, seen] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()]
  await using server = serve({
    tasks: {
      claim: async (_caller, _request, gone) => {
        asking.resolve()
        await aborted(gone)
        seen.resolve('ended')
        return undefined
      },
    },
  })
  const leaving = new AbortController()
  const asked = server.ask('tasks/claim', { ...claim, signal: leaving.signal }).catch(() => 'left')
  await asking.promise
  leaving.abort()
  expect(await asked).toBe('left')
  expect(await seen.promise).toBe('ended')
})

test('a task that is claimed in the moment in which its client leaves goes back at once', async () => {
  const asking = Promise.withResolvers<void>()
  const released = Promise.withResolvers<readonly [Caller, string, unknown]>()
  await using server = serve({
    tasks: {
      claim: async (_caller, _request, gone) => {
        asking.resolve()
        await aborted(gone)
        return claimed
      },
      release: async (...args) => {
        released.resolve(args)
        return task
      },
    },
  })
  const leaving = new AbortController()
  const asked = server.ask('tasks/claim', { ...claim, signal: leaving.signal }).catch(() => 'left')
  await asking.promise
  leaving.abort()
  await asked
  const [caller, id, request] = await released.promise
  expect([caller, id, request]).toEqual([
    { kind: 'run', id: 'sysadmin', role: 'sysadmin', taskId: 'TASK-001', runId: 'RUN-001', attempt: 1 },
    'TASK-001',
    { outcome: 'now' },
  ])
})

test('when the server stops, a waiting claim answers 204 and the server ends soon', async () => {
  const asking = Promise.withResolvers<void>()
  const server = serve({
    tasks: {
      claim: (_caller, _request, gone) => {
        asking.resolve()
        return aborted(gone)
      },
    },
  })
  const asked = server.ask('tasks/claim', claim)
  await asking.promise
  const before = performance.now()
  await server.close(15_000)
  expect((await asked).status).toBe(204)
  // Neither the wait of the claim nor the patience of the server was used up.
  expect(performance.now() - before).toBeLessThan(15_000)
})

test('500 clients wait at once, and the server answers others', async () => {
  const over = Promise.withResolvers<undefined>()
  await using server = serve({
    tasks: { claim: (_caller, _request, gone) => Promise.race([aborted(gone), over.promise]) },
    seed: { state: async () => ({ agents: [], budget: {} }) as never },
  })
  // One process has at most 256 requests of fetch under way, so these are bytes.
  const headers = [`Host: 127.0.0.1:${server.port}`, 'Authorization: Bearer agent', 'Content-Type: application/json']
  const bytes = rawRequest('POST /api/controlplane/tasks/claim HTTP/1.1', headers, body)
  const all = Promise.all(Array.from({ length: 500 }, () => sendRaw(server.port, bytes, { ms: 60_000, until: /\r\n\r\n/ })))
  const waits = () => server.counters.metrics().find(({ name }) => name.endsWith('waiting_claims'))?.samples
  await until(() => Bun.deepEquals(waits(), [{ value: 500 }]))
  expect((await server.ask('state')).status).toBe(200)
  over.resolve(undefined)
  expect(new Set((await all).map(({ status }) => status))).toEqual(new Set([204]))
}, 120_000)

test('a claim holds a secret, so it takes no Idempotency-Key', async () => {
  await using server = serve({ tasks: { claim: async () => claimed } })
  const keyed = await server.ask('tasks/claim', { ...claim, headers: { 'idempotency-key': 'a' } })
  expect(keyed.status).toBe(400)
  expect((await server.ask('tasks/claim', claim)).status).toBe(200)
})
