/** An approval runs one call once; every attempt is a receipt. */

import { describe, expect, test } from 'bun:test'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { approvalFor } from '../../../src/control/hostd/may-call.ts'
import { echo, operation, place } from './hostd-daemon.ts'

const anyText = `params.x = { type = "text", pattern = '^.+$', most = 300 }`

describe('approvals and receipts', () => {
  const more = `${anyText}\nrisk = "high"\napproval = true`
  const proof = (x: string, changed = {}) => ({
    approval_id: 'APPR-001',
    digest: approvalFor('danger', { x }).digest,
    approved_by: 'operator anna',
    used_at: new Date().toISOString(),
    ...changed,
  })

  test('an operation that needs an approval runs once for exactly the call that was approved', async () => {
    using at = place()
    const hostd = await at.start('--catalogue', at.catalogue(operation('danger', { argv: [at.script('echo', echo), '{x}'], more })))
    const call = (x: string, approval?: object) => ({ op: 'danger', params: { x }, ...(approval ? { approval } : {}) })
    const good = proof('a')
    // A check runs nothing, uses no approval and leaves no receipt.
    expect(await hostd.ask({ ...call('a', good), check: true })).toMatchObject([{ ok: true, output: '', exitCode: null }])
    const replies = [
      ...(await hostd.ask(call('a'))),
      ...(await hostd.ask(call('b', good))),
      ...(await hostd.ask(call('a', { ...good, used_at: '2026-01-01T00:00:00Z' }))),
      ...(await hostd.ask(call('a', { ...good, used_at: new Date(Date.now() + 3_600_000).toISOString() }))),
      ...(await hostd.ask(call('a', good))),
      ...(await hostd.ask(call('a', good))),
    ]
    expect(replies.map(({ output, error }) => error?.code ?? output)).toEqual([
      'approval_required',
      'approval_refused',
      'approval_refused',
      'approval_refused',
      '[a]',
      'approval_refused',
    ])
    const receipts = await at.receipts()
    expect(receipts.map(({ status, risk }) => `${status} ${risk}`)).toEqual([
      'denied high',
      'denied high',
      'denied high',
      'denied high',
      'allowed high',
      'denied high',
    ])
    const { stdout } = await at.nest.run(['receipt', 'show', '5'])
    expect(JSON.parse(stdout)).toMatchObject({
      words: {
        op: 'danger',
        params: { x: 'a' },
        peer: { pid: expect.any(Number) },
        approval: { approved_by: 'operator anna' },
        exit_code: 0,
        output_bytes: 3,
      },
    })
  })

  test('an approval counts only from the user of the control plane', async () => {
    using at = place()
    const hostd = await at.start(
      '--catalogue',
      at.catalogue(`[server]\ncontrol_uids = [65534]\n${operation('danger', { argv: [at.script('echo', echo), '{x}'], more })}`),
    )
    expect(await hostd.ask({ op: 'danger', params: { x: 'a' }, approval: proof('a') })).toMatchObject([
      { ok: false, error: { code: 'approval_refused', message: expect.stringContaining('control_uids') } },
    ])
  })

  test('denied, failed and done attempts are receipts that verify; altered ones do not', async () => {
    using at = place()
    const hostd = await at.start(
      '--catalogue',
      at.catalogue(
        operation('say', { argv: [at.script('echo', echo), '{x}'], more: anyText }) + operation('fail', { argv: ['/bin/false'] }),
      ),
    )
    await hostd.ask({ op: 'say', params: { x: 'hello' } })
    await hostd.ask({ op: 'fail' })
    await hostd.ask({ op: 'nothing' })
    expect((await at.receipts()).map(({ tool, status }) => `${tool} ${status}`)).toEqual([
      'hostd.say allowed',
      'hostd.fail failed',
      'hostd.nothing denied',
    ])
    expect(await at.nest.run(['receipt', 'verify', '--deep'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('valid: 3 receipts'),
    })
    const log = join(at.nest.home, '.braidclaw/tool_receipts.log')
    writeFileSync(log, readFileSync(log, 'utf8').replace('"status":"denied"', '"status":"failed"'))
    expect((await at.nest.run(['receipt', 'verify'])).code).toBe(9)
  })

  test('without a place for its notes hostd runs nothing', async () => {
    using at = place()
    const hostd = await at.start(
      '--catalogue',
      at.catalogue(operation('say', { argv: [at.script('echo', `#!/bin/sh\ntouch ${at.folder}/ran\n`)] })),
    )
    const notes = join(at.nest.home, '.braidclaw/hostd/running')
    Bun.spawnSync(['rm', '-r', notes])
    expect(await hostd.ask({ op: 'say' })).toMatchObject([{ ok: false, error: { code: 'no_receipt' } }])
    expect(statSync(join(at.folder, 'ran'), { throwIfNoEntry: false })).toBeUndefined()
  })
})
