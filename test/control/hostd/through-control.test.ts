/** Jailed agents call the real hostd through the real control plane: who may, approvals that are used once, and the golden answer of the seed. */

import { describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { given, needs } from '../../support/needs.ts'
import { controlProcess } from '../support/control-process.ts'
import { type ControlUnderTest, controlServer, operatorToken, talkTo } from '../support/control-server.ts'
import { echo, operation, type Place, place } from './hostd-daemon.ts'

const x = `params.x = { type = "text", pattern = '^[a-z]+$', optional = true }`

/** bastille-list has low risk, bastille-cmd high risk, and asked needs an approval whatever its risk. */
function operations(at: Place): string {
  const list = at.script('bastille', '#!/bin/sh\nprintf "JID  IP Address      Hostname  Path"\n')
  const run = at.script('echo', echo)
  return [
    operation('bastille-list', { argv: [list, 'list'] }),
    operation('bastille-cmd', { argv: [run, '{x}'], more: `risk = "high"\napproval = true\n${x}` }),
    operation('snapshot', { argv: [run, '{x}'], more: `risk = "medium"\n${x}` }),
    operation('jail', { argv: [run, '{x}'], more: `risk = "high"\ncompat = true\n${x}` }),
    operation('fails', { argv: ['/bin/false'] }),
  ].join('')
}

type Stage = AsyncDisposable & { readonly at: Place; readonly control: ControlUnderTest }

async function stage(): Promise<Stage> {
  const at = place()
  await at.start('--catalogue', at.catalogue(operations(at)))
  const control = await controlServer({ env: { CONTROLPLANE_HOSTD_SOCKET: at.socket } })
  return {
    at,
    control,
    async [Symbol.asyncDispose]() {
      await control[Symbol.asyncDispose]()
      at[Symbol.dispose]()
    },
  }
}

describe('POST /api/controlplane/hostd', () => {
  test('answers the example of the seed byte for byte, also for the shared secret', async () => {
    await using on = await stage()
    const { text, status } = await on.control.ask('hostd', { body: { op: 'bastille-list', params: {} }, token: on.control.sharedSecret })
    expect({ status, text }).toEqual({ status: 200, text: '{"ok":true,"output":"JID  IP Address      Hostname  Path","exitCode":0}' })
    const failed = await on.control.ask('hostd', { body: { op: 'fails' } })
    expect(failed).toMatchObject({ status: 200, body: { ok: false, output: '', exitCode: 1, error: { code: 'failed' } } })
    const unknown = await on.control.ask('hostd', { body: { op: 'rm', params: { path: '/' } } })
    expect(unknown).toMatchObject({ status: 200, body: { ok: false, exitCode: null, error: { code: 'unknown_op' } } })
  })

  test('an operation marked compat = true may be called with the shared secret; an agent still asks for it', async () => {
    await using on = await stage()
    const key = await on.control.addAgent('sysadmin')
    const call = (token: string) => on.control.ask('hostd', { body: { op: 'jail', params: { x: 'a' } }, token })
    expect(await call(key)).toMatchObject({ status: 403, body: { error: { code: 'approval_required' } } })
    expect(await call(on.control.sharedSecret)).toMatchObject({ status: 200, body: { ok: true, exitCode: 0 } })
  })

  test('keeps the shared secret, agents and strangers from what has risk, and asks for an approval', async () => {
    await using on = await stage()
    const key = await on.control.addAgent('sysadmin')
    const call = (op: string, token: string | null) => on.control.ask('hostd', { body: { op, params: { x: 'a' } }, token })
    expect((await call('bastille-list', null)).status).toBe(401)
    expect((await call('bastille-list', 'cpa_wrong')).status).toBe(401)
    expect(await call('snapshot', on.control.sharedSecret)).toMatchObject({ status: 403, body: { error: { code: 'forbidden' } } })
    expect(await call('bastille-cmd', key)).toMatchObject({
      status: 403,
      body: { error: { code: 'approval_required', details: { approval_id: 'APPR-001' } } },
    })
    const impossible = await on.control.ask('hostd', { body: { op: 'snapshot', params: { x: 'A;' } }, token: key })
    expect(impossible).toMatchObject({ status: 200, body: { ok: false, exitCode: null, error: { code: 'bad_params' } } })
    expect((await on.control.ask('approvals?state=pending&view=full')).text).not.toContain('APPR-002')
    expect(await call('bastille-cmd', on.control.operator)).toMatchObject({ status: 200, body: { ok: true, output: '[a]' } })
    expect((await on.at.receipts()).map(({ tool, status }) => `${tool} ${status}`)).toEqual([
      'hostd.snapshot denied',
      'hostd.bastille-cmd allowed',
    ])
  })

  test('carries out what was approved once, and nothing else with that approval', async () => {
    await using on = await stage()
    const key = await on.control.addAgent('sysadmin')
    const other = await on.control.addAgent('db-admin')
    const call = (params: object, more: object = {}, token = key) =>
      on.control.ask('hostd', { body: { op: 'bastille-cmd', params, ...more }, token })
    const { body } = await call({ x: 'good' })
    const use = { approval_id: body.error.details.approval_id }
    expect((await call({ x: 'good' }, use)).status).toBe(409)
    await on.control.ask(`approvals/${use.approval_id}/decision`, { body: { decision: 'approve' } })
    expect((await call({ x: 'bad' }, use)).status).toBe(409)
    expect((await call({ x: 'good' }, use, other)).status).toBe(409)
    expect(await call({ x: 'good' }, use)).toMatchObject({ status: 200, body: { ok: true, output: '[good]' } })
    expect((await call({ x: 'good' }, use)).status).toBe(409)
    const { stdout } = await on.at.nest.run(['receipt', 'show', '1'])
    expect(JSON.parse(stdout)).toMatchObject({
      tool: 'hostd.bastille-cmd',
      words: {
        caller: 'agent sysadmin',
        params: { x: 'good' },
        approval: { approval_id: use.approval_id, approved_by: expect.stringContaining('operator') },
      },
    })
    expect(await on.at.receipts()).toHaveLength(1)
  })

  test('carries out a call of a run whose task waited for the decision', async () => {
    await using on = await stage()
    const key = await on.control.addAgent('sysadmin')
    await on.control.ask('tasks', { body: { title: 'snapshot', role: 'sysadmin' } })
    const claim = async () => (await on.control.ask('tasks/claim', { body: { role: 'sysadmin', agent_id: 'sysadmin' }, token: key })).body
    const first = await claim()
    const body = { op: 'snapshot', params: { x: 'a' } }
    const asked = await on.control.ask('hostd', { body, token: first.run_token })
    expect(asked).toMatchObject({ status: 403, body: { error: { code: 'approval_required' } } })
    const { approval_id } = asked.body.error.details
    expect((await on.control.ask(`tasks/${first.task.task_id}`)).body.status).toBe('awaiting_approval')
    await on.control.ask(`approvals/${approval_id}/decision`, { body: { decision: 'approve' } })
    const second = await claim()
    expect((await on.control.ask('hostd', { body: { ...body, approval_id }, token: first.run_token })).status).toBeGreaterThanOrEqual(400)
    expect(await on.control.ask('hostd', { body: { ...body, approval_id }, token: second.run_token })).toMatchObject({
      status: 200,
      body: { ok: true, output: '[a]' },
    })
  })

  test('lists the operations, and says 503 when hostd is gone', async () => {
    await using on = await stage()
    const { body } = await on.control.ask('hostd/ops')
    expect(body.ops.map(({ op }: { op: string }) => op)).toEqual(['bastille-list', 'bastille-cmd', 'snapshot', 'jail', 'fails'])
    await using without = await controlServer({ env: { CONTROLPLANE_HOSTD_SOCKET: join(on.at.folder, 'none.sock') } })
    expect(await without.ask('hostd', { body: { op: 'bastille-list' } })).toMatchObject({
      status: 503,
      body: { error: { code: 'unavailable' } },
    })
  })
})

const asRoot = test.if(given(process.getuid?.() === 0, 'root') && needs('setpriv'))

asRoot('a control plane of another user calls the hostd of root, and only that user may bring approvals', async () => {
  using at = place()
  await at.start('--catalogue', at.catalogue(operations(at)), '--group', '65534', '--control-user', 'nobody')
  const home = join(at.folder, 'control')
  mkdirSync(home)
  Bun.spawnSync(['chown', '65534:65534', home])
  chmodSync(at.folder, 0o755)
  const control = await controlProcess({
    home,
    env: { CONTROLPLANE_HOSTD_SOCKET: at.socket },
    through: ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--'],
  })
  const { ask } = talkTo(control.url)
  expect(await ask('hostd', { body: { op: 'bastille-cmd', params: { x: 'a' } }, token: operatorToken })).toMatchObject({
    status: 200,
    body: { ok: true, output: '[a]' },
  })
  expect(JSON.parse((await at.nest.run(['receipt', 'show', '1'])).stdout)).toMatchObject({
    words: { peer: { uid: 65534 }, approval: { approval_id: 'direct' } },
  })
  await control.stop()
})
