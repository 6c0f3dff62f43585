/** A control plane with one run and one budget, in memory, for the tests of the pass-through. */

import type { Caller } from '../../../src/control/contract/caller.ts'
import { PlaneRefusal } from '../../../src/control/contract/plane-refusal.ts'
import type { Task } from '../../../src/control/contract/task-shapes.ts'
import type { PassThroughDeps } from '../../../src/control/llm/upstream-call.ts'

export type StubPlane = PassThroughDeps['plane'] & {
  readonly state: {
    limit: number | null
    spent: number
    reserved: number
    token: string
    cancelled: boolean
    runId: string
    broken: boolean
  }
  readonly settled: number[]
  readonly reservedSums: number[]
}

const caller: Caller = { kind: 'run', id: 'sysadmin', role: 'sysadmin', taskId: 'TASK-001', runId: 'RUN-001', attempt: 1 }

export function createStubPlane(limit: number | null): StubPlane {
  const state = { limit, spent: 0, reserved: 0, token: 'cpr_test', cancelled: false, runId: 'RUN-001', broken: false }
  const open = new Map<string, number>()
  const settled: number[] = []
  const reservedSums: number[] = []
  const left = () => (state.limit === null ? null : state.limit - state.spent - state.reserved)

  return {
    ...{ state, settled, reservedSums },
    access: {
      async callerOf(secret) {
        if (state.broken) throw new PlaneRefusal('unavailable', 'the database is away')
        if (secret === 'cpa_agent') return { kind: 'agent', id: 'sysadmin', role: 'sysadmin' }
        return secret === state.token ? caller : undefined
      },
    },
    tasks: {
      async get() {
        return { ...emptyTask, cancel_requested: state.cancelled, run_id: state.runId }
      },
    },
    budget: {
      remaining: async () => left(),
      async reserve(_, { tokens }) {
        const remaining = left()
        if (remaining !== null && tokens > remaining) {
          const shortage = state.spent + tokens <= (state.limit ?? 0) ? 'soon' : 'spent'
          throw new PlaneRefusal('budget_exceeded', `${tokens} tokens are more than the ${remaining} left`, { remaining, shortage })
        }
        const id = `RSV-${crypto.randomUUID()}`
        open.set(id, tokens)
        state.reserved += tokens
        reservedSums.push(tokens)
        return { reservation_id: id, tokens, budget_remaining: left() }
      },
      async settle(_, { reservation_id, tokens }) {
        state.reserved -= open.get(reservation_id) ?? 0
        open.delete(reservation_id)
        state.spent += tokens
        if (tokens > 0) settled.push(tokens)
        return { tokens, budget_remaining: left() }
      },
    },
  }
}

export const emptyTask: Omit<Task, 'run_id' | 'cancel_requested'> = {
  ...{
    task_id: 'TASK-001',
    title: 't',
    description: '',
    role: 'sysadmin',
    agent_id: null,
    assigned_to: 'sysadmin',
    labels: [],
    depends_on: [],
  },
  ...{
    priority: 'medium',
    status: 'running',
    blocked_reason: null,
    context: {},
    created_at: '',
    updated_at: '',
    created_by: '',
    version: 1,
  },
  ...{ attempt: 1, max_attempts: 3, available_at: '', lease_until: null, parent_task_id: null, budget_tokens: null, tokens_used: 0 },
  ...{ result: null, error: null, ended_at: null },
}
