/** Speaks to a control plane over HTTP with the shapes of the contract; used by the commands and by workers. Every call rejects with PlaneRefusal. */

import type {
  ActivityPost,
  ActivityReply,
  ControlEvent,
  EventQuery,
  SeedApprovals,
  SeedState,
  SeedTask,
} from '../contract/activity-shapes.ts'
import type { Approval, ApprovalQuery, ApprovedOperation, DecisionRequest } from '../contract/approval-shapes.ts'
import type {
  Budget,
  BudgetPatch,
  LedgerEntry,
  LedgerQuery,
  Reservation,
  ReserveRequest,
  Settled,
  SettleRequest,
} from '../contract/fleet-shapes.ts'
import type { ControlSchedule } from '../contract/schedule-shapes.ts'
import { type FleetClient, fleetClient } from './fleet-client.ts'
import { type Followed, followEvents } from './follow-events.ts'
import type { Input } from './inputs.ts'
import { type RunClient, runClient } from './run-client.ts'
import { type TaskClient, taskClient } from './task-client.ts'
import { createTransport, type TransportOptions } from './transport.ts'

export type ControlClient = {
  readonly tasks: TaskClient
  readonly fleet: FleetClient
  readonly runs: RunClient
  readonly approvals: {
    get(id: string): Promise<Approval>
    list(query?: Partial<ApprovalQuery>): Promise<{ readonly approvals: readonly Approval[]; readonly next: string | null }>
    decide(id: string, request: Input<DecisionRequest, 'note'>): Promise<Approval>
    use(id: string, digest?: string): Promise<ApprovedOperation>
  }
  readonly budget: {
    get(): Promise<Budget>
    set(patch: BudgetPatch): Promise<Budget>
    ledger(query?: Partial<LedgerQuery>): Promise<{ readonly entries: readonly LedgerEntry[]; readonly next: number | null }>
    reserve(request: Input<ReserveRequest, 'purpose'>): Promise<Reservation>
    settle(request: Input<SettleRequest, 'model'>): Promise<Settled>
  }
  readonly events: {
    list(query?: Partial<EventQuery>): Promise<{ readonly events: readonly ControlEvent[]; readonly next: number | null }>
    /** Asks again after a broken connection, without a gap. Ends when the signal aborts. */
    follow(query: Followed, signal: AbortSignal): AsyncGenerator<ControlEvent>
  }
  readonly schedules: {
    list(): Promise<readonly ControlSchedule[]>
    /** The body of POST schedules; the daemon fills in what is missing. */
    add(draft: object): Promise<ControlSchedule>
    setEnabled(id: string, enabled: boolean): Promise<ControlSchedule>
    remove(id: string): Promise<void>
  }
  /** The answers of the seed's routes. */
  readonly seed: {
    state(signal?: AbortSignal): Promise<SeedState>
    tasks(role?: string): Promise<{ readonly tasks: readonly SeedTask[] }>
    approvals(agentId?: string): Promise<SeedApprovals>
  }
  /** With a key, a repeated post counts once. */
  activity(post: Record<string, unknown> & Pick<ActivityPost, 'event_type'>, key?: string): Promise<ActivityReply>
  readonly hostd: {
    call(request: HostdRequest): Promise<HostdAnswer>
    ops(): Promise<readonly HostdOperation[]>
  }
  health(): Promise<{ readonly ok: boolean; readonly version: string }>
  /** The text of /metrics. */
  metrics(): Promise<string>
  /** The wire itself, for routes without a method here. */
  readonly transport: ReturnType<typeof createTransport>
}

export type HostdRequest = { readonly op: string; readonly params?: Record<string, unknown>; readonly approval_id?: string }
export type HostdAnswer = { readonly ok: boolean; readonly output: string; readonly exitCode: number | null }
export type HostdOperation = Record<string, unknown> & { readonly op: string }

export function createControlClient(options: TransportOptions): ControlClient {
  const transport = createTransport(options)
  const { json } = transport
  const get = <T>(path: string, query = {}) => json<T>({ method: 'GET', path, query })
  const post = <T>(path: string, body: unknown = {}, key: string = crypto.randomUUID()) =>
    json<T>({ method: 'POST', path, body, headers: { 'idempotency-key': key }, repeatable: true })

  return {
    transport,
    tasks: taskClient(transport),
    fleet: fleetClient(transport),
    runs: runClient(transport),
    approvals: {
      get: (id) => get(`approvals/${encodeURIComponent(id)}`),
      list: (query = {}) => get('approvals', { ...query, view: 'full' }),
      decide: (id, request) => post(`approvals/${encodeURIComponent(id)}/decision`, request),
      use: (id, digest) => post(`approvals/${encodeURIComponent(id)}/use`, digest === undefined ? {} : { digest }),
    },
    budget: {
      get: () => get('budget'),
      set: (body) => json({ method: 'PUT', path: 'budget', body }),
      ledger: (query = {}) => get('budget/ledger', query),
      reserve: (request) => post('budget/reserve', request),
      settle: (request) => post('budget/settle', request),
    },
    events: {
      list: (query = {}) => get('activity', query),
      follow: (query, signal) => followEvents(transport, options, query, signal),
    },
    schedules: {
      list: async () => (await get<{ schedules: ControlSchedule[] }>('schedules')).schedules,
      add: (draft) => post('schedules', draft),
      setEnabled: (id, enabled) => post(`schedules/${encodeURIComponent(id)}/${enabled ? 'enable' : 'disable'}`),
      remove: async (id) => void (await json({ method: 'DELETE', path: `schedules/${encodeURIComponent(id)}` })),
    },
    seed: {
      state: (signal) => json({ method: 'GET', path: 'state', ...(signal ? { signal } : {}) }),
      tasks: (role) => get('tasks', { role }),
      approvals: (agentId) => get('approvals', { agent_id: agentId }),
    },
    activity: (body, key) => post('activity', body, key),
    hostd: {
      call: (request) => json({ method: 'POST', path: 'hostd', body: { params: {}, ...request }, timeoutMs: 600_000 }),
      ops: async () => (await get<{ ops: HostdOperation[] }>('hostd/ops')).ops,
    },
    health: () => get('/health'),
    metrics: async () => (await transport.send({ method: 'GET', path: '/metrics' })).text(),
  }
}
