/** The control plane is killed while models answer: the ledger never has less than what was spent. */

import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dialects, upTo } from '../../support/dialects.ts'
import { sends, startFake } from '../../support/vendor-fake.ts'
import { controlProcess } from '../support/control-process.ts'
import { talkTo } from '../support/control-server.ts'

test('kill -9 in the middle of streams: what was reserved counts as spent once the lease is lost, and the task goes on', async () => {
  const home = mkdtempSync(join(tmpdir(), 'control-llm-kill-'))
  const [, messages] = dialects
  const vendor = startFake(() => sends(messages ? upTo(messages, 'Hel') : [], 'hold'))
  const env = { CONTROLPLANE_ANTHROPIC_URL: vendor.url, CONTROLPLANE_LEASE_SECONDS: '5' }
  const first = await controlProcess({ home, env })
  const { ask, client } = talkTo(first.url)
  await client().fleet.add({ id: 'sysadmin', role: 'sysadmin' })
  const { key } = await client().fleet.newKey('sysadmin')
  await ask('budget', { method: 'PUT', body: { daily_tokens: 10_000 } })
  await ask('tasks', { body: { title: 't', role: 'sysadmin' } })
  const claimed = { role: 'sysadmin', agent_id: 'sysadmin' }
  const { run_token } = (await ask('tasks/claim', { token: key, body: claimed })).body
  const call = () =>
    fetch(`${first.url}/api/controlplane/llm/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': run_token, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', max_tokens: 500, stream: true, messages: [{ role: 'user', content: 'hi' }] }),
    })
  const streams = await Promise.all([call(), call()])
  await Promise.all(streams.map((stream) => stream.body?.getReader().read()))
  const { reserved } = (await ask('budget')).body
  expect(reserved).toBeGreaterThan(1_000)
  await first.kill()
  const second = await controlProcess({ home, env, port: first.port })
  const again = await ask('tasks/claim', { token: key, body: { ...claimed, wait_ms: 25_000 } })
  expect(again.body).toMatchObject({ attempt: 2, task: { task_id: 'TASK-001' } })
  expect((await ask('budget')).body).toMatchObject({ spent_today: reserved, reserved: 0, remaining: 10_000 - reserved })
  expect((await call()).status).toBeOneOf([401, 409])
  await second.stop()
  vendor.stop()
  rmSync(home, { recursive: true, force: true })
}, 120_000)
