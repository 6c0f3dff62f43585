import { describe, expect, test } from 'bun:test'
import type { ActivityPost } from '../contract/activity-shapes.ts'
import type { Caller } from '../contract/caller.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import type { HostdCall } from './client.ts'
import { createHostdProxy } from './hostd-proxy.ts'
import type { OperationRow } from './hostd-wire.ts'
import { approvalFor, mayCall } from './may-call.ts'

const callers: { readonly [kind in Caller['kind']]: Caller } = {
  operator: { kind: 'operator', id: '1', name: 'anna' },
  agent: { kind: 'agent', id: 'sysadmin', role: 'sysadmin' },
  run: { kind: 'run', id: 'sysadmin', role: 'sysadmin', taskId: 'TASK-001', runId: 'RUN-001', attempt: 1 },
  seed: { kind: 'seed', id: 'shared-secret' },
}

function row(op: string, more: Partial<OperationRow> = {}): OperationRow {
  return { op, about: '', platforms: ['linux'], risk: 'low', approval: false, params: {}, timeout_s: 30, available: true, ...more }
}

const rows = [
  row('low'),
  row('asked', { approval: true }),
  row('medium', { risk: 'medium' }),
  row('gone', { risk: 'high', available: false, unavailable: 'not here' }),
]

/** A plane that gives APPR-007, which permits `medium` with {x: 1}, once. */
function stage() {
  const calls: HostdCall[] = []
  const asked: ActivityPost[] = []
  const noted: string[] = []
  const checked: string[] = []
  const state = { used: false }
  const proxy = createHostdProxy({
    socket: '/run/hostd.sock',
    now: () => 1_000,
    list: async () => ({ ok: true, operations: rows }),
    async call(_, call) {
      if (call.check) checked.push(call.op)
      if (call.check && call.op === 'rm')
        return { id: 'call', ok: false, output: '', exitCode: null, error: { code: 'unknown_op', message: 'no such operation' } }
      if (call.check) return { id: 'call', ok: call.params?.x !== 'bad', output: '', exitCode: null }
      calls.push(call)
      return { id: 'call', ok: true, output: 'done', exitCode: 0, receipt: 'receipt-1' }
    },
    plane: {
      async activity(_, post) {
        asked.push(post)
        return { ok: true, activity_id: 1, task_id: null, approval_id: 'APPR-007', escalation_task_id: null }
      },
      approvals: {
        get: () => Promise.reject(new PlaneRefusal('forbidden', 'not yours to read')),
        list: () => Promise.reject(new Error('nobody asks')),
        decide: () => Promise.reject(new Error('nobody decides')),
        async use(_, id, digest) {
          const { operation, details, digest: approved } = approvalFor('medium', { x: 1 })
          if (state.used || digest !== approved) throw new PlaneRefusal('conflict', `${id} cannot be used`)
          state.used = true
          return { approval_id: id, operation, details: { ...details }, digest: approved, note: null }
        },
      },
      noteHostd: async (caller, { op, ok }) => void noted.push(`${caller.kind} ${op} ${ok}`),
    },
  })
  const call = (kind: Caller['kind'], op: string, more = {}) =>
    proxy.call(callers[kind], { op, reasoning: '', ...more }).then(
      (answer) => JSON.stringify(answer),
      (error: unknown) => (error instanceof PlaneRefusal ? `${error.code} ${error.details.approval_id ?? ''}`.trim() : String(error)),
    )
  return { call, calls, asked, noted, checked, proxy }
}

describe('who may call an operation without an approval', () => {
  test.each([
    ['operator', 'high', true, true],
    ['seed', 'low', false, true],
    ['agent', 'low', false, true],
    ['run', 'low', false, true],
    ['seed', 'low', true, false],
    ['run', 'low', true, false],
    ['seed', 'medium', false, false],
    ['agent', 'medium', false, false],
    ['run', 'high', false, false],
  ] as const)('%s, %s risk, approval %p: %p', (kind, risk, approval, may) => {
    expect(mayCall({ op: 'x', risk, approval }, kind, false).may).toBe(may)
    expect(mayCall({ op: 'x', risk, approval }, kind, true).may).toBe(true)
  })
})

test('what the catalogue marks with compat = true may be called with the shared secret, and with nothing else more than before', () => {
  for (const risk of ['medium', 'high'] as const) {
    const may = (kind: Caller['kind'], approval = false) => mayCall({ op: 'x', risk, approval, compat: true }, kind, false).may
    expect([may('seed', true), may('agent'), may('run'), may('seed'), may('operator')]).toEqual([false, false, false, true, true])
  }
})

describe('a call', () => {
  const done = '{"ok":true,"output":"done","exitCode":0}'

  test('of low risk is carried out for everybody, and answers with the keys of the seed in its order', async () => {
    const { call, calls, noted } = stage()
    for (const kind of ['operator', 'agent', 'run', 'seed'] as const) expect(await call(kind, 'low')).toBe(done)
    expect(calls.map(({ caller, approval }) => [caller, approval])).toEqual([
      ['operator anna', undefined],
      ['agent sysadmin', undefined],
      ['run RUN-001 of sysadmin', undefined],
      ['shared secret', undefined],
    ])
    expect(noted).toEqual(['operator low true', 'agent low true', 'run low true', 'seed low true'])
  })

  test('of more risk is not carried out, but asks for an approval, which the shared secret cannot', async () => {
    const { call, calls, asked } = stage()
    expect(await call('run', 'medium', { params: { x: 1 }, reasoning: 'to be safe' })).toBe('approval_required APPR-007')
    expect(await call('agent', 'asked')).toBe('approval_required APPR-007')
    expect(await call('seed', 'medium')).toBe('forbidden')
    expect(calls).toEqual([])
    expect(asked).toMatchObject([
      {
        event_type: 'approval_request',
        agent_id: 'sysadmin',
        operation: 'hostd medium',
        reasoning: 'to be safe',
        details: { op: 'medium', params: { x: 1 } },
      },
      { operation: 'hostd asked' },
    ])
  })

  test('of what was not there or not available is never carried out, whatever has come since; hostd says so, and nobody is asked', async () => {
    const { call, calls, checked, asked, noted } = stage()
    for (const kind of ['seed', 'agent', 'run', 'operator'] as const) expect(await call(kind, 'gone')).toBe('unavailable')
    expect(await call('seed', 'rm')).toBe(
      '{"ok":false,"output":"","exitCode":null,"error":{"code":"unknown_op","message":"no such operation"}}',
    )
    expect(await call('run', 'gone', { approval_id: 'APPR-007' })).toBe('unavailable')
    expect([calls, asked, checked]).toEqual([[], [], ['gone', 'gone', 'gone', 'gone', 'rm', 'gone']])
    expect(noted).toEqual(['seed rm false'])
  })

  test('of a run that has ended is refused, whatever its risk', async () => {
    const { calls, checked, proxy } = stage()
    for (const op of ['low', 'medium', 'gone']) {
      const ended: Caller = { kind: 'run', id: 'a1', role: 'r', taskId: 'TASK-001', runId: 'RUN-001', attempt: 1, hasEnded: true }
      const refused = proxy.call(ended, { op, reasoning: '' })
      await expect(refused).rejects.toThrow('RUN-001 has ended')
    }
    expect([calls, checked]).toEqual([[], []])
  })

  test('of one that calls without end is slowed down, and that of others is not', async () => {
    const { call, calls, proxy } = stage()
    for (let n = 0; n < 60; n += 1) await call('seed', 'low')
    expect([calls.length, await call('seed', 'low')]).toEqual([60, 'too_many'])
    await expect(proxy.operations(callers.seed)).rejects.toMatchObject({ code: 'too_many', details: { retry_after_ms: 1_000 } })
    for (const kind of ['agent', 'run', 'operator'] as const) expect(await call(kind, 'low')).toContain('"ok":true')
  })

  test('that hostd would refuse anyway is refused without asking anybody', async () => {
    const { call, calls, asked } = stage()
    expect(await call('run', 'medium', { params: { x: 'bad' } })).toBe('{"ok":false,"output":"","exitCode":null}')
    expect([calls, asked]).toEqual([[], []])
  })

  test('with an approval is carried out once, with proof of it, and not with other parameters', async () => {
    const { call, calls } = stage()
    expect(await call('run', 'medium', { params: { x: 2 }, approval_id: 'APPR-007' })).toBe('conflict')
    expect(await call('run', 'medium', { params: { x: 1 }, approval_id: 'APPR-007' })).toBe(done)
    expect(await call('run', 'medium', { params: { x: 1 }, approval_id: 'APPR-007' })).toBe('conflict')
    expect(calls.map(({ approval }) => approval)).toEqual([
      {
        approval_id: 'APPR-007',
        digest: approvalFor('medium', { x: 1 }).digest,
        approved_by: 'an operator',
        used_at: '1970-01-01T00:00:01.000Z',
      },
    ])
  })

  test('of an operator is an approval by itself', async () => {
    const { call, calls } = stage()
    expect(await call('operator', 'asked')).toBe(done)
    expect(calls[0]?.approval).toMatchObject({ approval_id: 'direct', approved_by: 'operator anna' })
  })

  test('without a hostd says how to start one', async () => {
    const proxy = createHostdProxy({ ...options(), now: () => 0 })
    expect(proxy.operations(callers.operator)).rejects.toThrow('CONTROLPLANE_HOSTD_SOCKET')
  })
})

function options() {
  const never = () => Promise.reject(new Error('not called'))
  return {
    call: never,
    list: never,
    plane: { activity: never, noteHostd: never, approvals: { get: never, list: never, decide: never, use: never } },
  }
}
