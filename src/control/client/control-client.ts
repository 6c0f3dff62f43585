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
  Agent,
  AgentDraft,
  AgentKey,
  AgentPatch,
  Budget,
  BudgetPatch,
  Identity,
  LedgerEntry,
  LedgerQuery,
  NewAgentKey,
  NewOperatorToken,
  OperatorToken,
  Reservation,
  ReserveRequest,
  Settled,
  SettleRequest,
} from '../contract/fleet-shapes.ts'
import type { ListedRun, Run, RunQuery, SessionLine } from '../contract/run-shapes.ts'
import type { ControlSchedule } from '../contract/schedule-shapes.ts'
import type {
  Beat,
  Claim,
  ClaimRequest,
  Effect,
  EffectReply,
  EffectRequest,
  ReleaseRequest,
  ResolveRequest,
  Task,
  TaskDraft,
  TaskPatch,
  TaskQuery,
} from '../contract/task-shapes.ts'
import { type Followed, followEvents } from './follow-events.ts'
import { createTransport, type Transport, type TransportOptions } from './transport.ts'

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

type HostdRequest = { readonly op: string; readonly params?: Record<string, unknown>; readonly approval_id?: string }
type HostdAnswer = { readonly ok: boolean; readonly output: string; readonly exitCode: number | null }
type HostdOperation = Record<string, unknown> & { readonly op: string }

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

export type NewTask = Input<TaskDraft, 'description' | 'priority' | 'labels' | 'depends_on' | 'context' | 'max_attempts'>

type TaskClient = {
  /** A repeated call with the same key makes one task; without one, only a broken connection repeats it, with a key of its own. */
  create(draft: NewTask, key?: string): Promise<Task>
  createMany(drafts: readonly NewTask[], key?: string): Promise<readonly Task[]>
  get(id: string): Promise<Task>
  list(
    query?: Partial<TaskQuery>,
  ): Promise<{ readonly tasks: readonly Task[]; readonly next: string | null; readonly counts: Readonly<Record<string, number>> }>
  edit(id: string, patch: TaskPatch, version?: number): Promise<Task>
  /** Waits up to `wait_ms`; undefined when there was none. Never repeated: a lost answer is a lease that runs out. */
  claim(request: Input<ClaimRequest, 'wait_ms' | 'labels'>, signal?: AbortSignal): Promise<Claim | undefined>
  beat(id: string, signal?: AbortSignal): Promise<Beat>
  release(id: string, request: Input<ReleaseRequest, 'outcome'>): Promise<Task>
  cancel(id: string, note?: string): Promise<Task>
  retry(id: string, note?: string): Promise<Task>
  resolve(id: string, request: Input<ResolveRequest, 'note'>): Promise<Task>
  effects(id: string): Promise<readonly Effect[]>
  beginEffect(id: string, request: Input<EffectRequest, 'idempotent' | 'description'>): Promise<EffectReply>
  endEffect(id: string, key: string, result: unknown): Promise<EffectReply>
}

function taskClient({ json }: Transport): TaskClient {
  const at = (id: string, rest = '') => `tasks/${encodeURIComponent(id)}${rest}`
  const post = <T>(path: string, body: unknown, key?: string) =>
    json<T>({ method: 'POST', path, body, ...(key === undefined ? {} : { headers: { 'idempotency-key': key }, repeatable: true }) })

  return {
    create: (draft, key = crypto.randomUUID()) => post('tasks', draft, key),
    createMany: async (tasks, key = crypto.randomUUID()) => (await post<{ tasks: Task[] }>('tasks/batch', { tasks }, key)).tasks,
    get: (id) => json({ method: 'GET', path: at(id) }),
    list: (query = {}) => json({ method: 'GET', path: 'tasks', query: { ...query, view: 'full' } }),
    edit: (id, body, version) =>
      json({ method: 'PATCH', path: at(id), body, ...(version === undefined ? {} : { headers: { 'if-match': `"${version}"` } }) }),
    claim: (body, signal) =>
      json({ method: 'POST', path: 'tasks/claim', body, timeoutMs: (body.wait_ms ?? 0) + 15_000, ...(signal ? { signal } : {}) }),
    beat: (id, signal) => json({ method: 'POST', path: at(id, '/beat'), body: {}, repeatable: true, ...(signal ? { signal } : {}) }),
    release: (id, request) => post(at(id, '/release'), request, crypto.randomUUID()),
    cancel: (id, note = '') => post(at(id, '/cancel'), { note }, crypto.randomUUID()),
    retry: (id, note = '') => post(at(id, '/retry'), { note }, crypto.randomUUID()),
    resolve: (id, request) => post(at(id, '/resolve'), request, crypto.randomUUID()),
    effects: async (id) => (await json<{ effects: Effect[] }>({ method: 'GET', path: at(id, '/effects') })).effects,
    // An intent is not repeated by itself: whether it is in doubt is for the run to decide.
    beginEffect: (id, request) => post(at(id, '/effects'), request, crypto.randomUUID()),
    endEffect: (id, key, result) => json({ method: 'POST', path: at(id, '/effects/done'), body: { key, result }, repeatable: true }),
  }
}

export type Delivery = {
  readonly manifest?: Record<string, unknown>
  readonly changes?: 'none' | 'waiting' | 'applied' | 'dropped'
  readonly skill?: string
}
type Artifact = { readonly name: string; readonly digest: string; readonly bytes: number }

type RunClient = {
  get(id: string): Promise<Run>
  list(query?: Partial<RunQuery>): Promise<{ readonly runs: readonly ListedRun[]; readonly next: string | null }>
  /** `at`: the byte where the piece begins; a piece sent twice is stored once. */
  appendLog(id: string, at: number, piece: string): Promise<{ readonly log_bytes: number; readonly log_truncated: boolean }>
  /** Bytes `from` up to and without `to` (default: the end). */
  log(id: string, from?: number, to?: number): Promise<{ readonly bytes: Uint8Array; readonly total: number }>
  deliver(id: string, delivery: Delivery): Promise<Run>
  /** `body` is base64, `digest` the SHA-256 of the bytes in hex. */
  putArtifact(id: string, artifact: { readonly name: string; readonly digest: string; readonly body: string }): Promise<Artifact>
  /** The bytes as they were delivered. */
  artifact(id: string, name: string): Promise<{ readonly digest: string; readonly bytes: Uint8Array }>
  addSession(agentId: string, line: SessionLine): Promise<void>
  sessions(agentId: string, limit?: number): Promise<readonly SessionLine[]>
}

function runClient({ json, send }: Transport): RunClient {
  const at = (id: string, rest = '') => `runs/${encodeURIComponent(id)}${rest}`
  const artifactAt = (id: string, name: string) => at(id, `/artifacts/${encodeURIComponent(name)}`)
  const sessionsAt = (agentId: string) => `agents/${encodeURIComponent(agentId)}/sessions`
  return {
    get: (id) => json({ method: 'GET', path: at(id) }),
    list: (query = {}) => json({ method: 'GET', path: 'runs', query }),
    appendLog: (id, from, piece) =>
      json({ method: 'POST', path: at(id, '/log'), body: { at: from, piece }, anyText: true, repeatable: true }),
    async log(id, from = 0, to) {
      const response = await send({ method: 'GET', path: at(id, '/log'), query: { from, to } })
      return { bytes: await response.bytes(), total: Number(response.headers.get('x-log-bytes') ?? 0) }
    },
    deliver: (id, body) => json({ method: 'POST', path: at(id, '/deliver'), body, repeatable: true }),
    putArtifact: (id, { name, ...body }) => json({ method: 'PUT', path: artifactAt(id, name), body }),
    async artifact(id, name) {
      const response = await send({ method: 'GET', path: artifactAt(id, name) })
      return { bytes: await response.bytes(), digest: response.headers.get('x-digest-sha256') ?? '' }
    },
    addSession: async (agentId, body) =>
      void (await json({
        method: 'POST',
        path: sessionsAt(agentId),
        body,
        headers: { 'idempotency-key': crypto.randomUUID() },
        repeatable: true,
      })),
    sessions: async (agentId, limit) =>
      (await json<{ sessions: SessionLine[] }>({ method: 'GET', path: sessionsAt(agentId), query: { limit } })).sessions,
  }
}

type AgentReceipts = {
  readonly agent_id: string
  readonly receipts: Record<string, unknown> | null
  readonly reported_at: string | null
}

export type FleetClient = {
  /** Whose token this client has. */
  whoAmI(): Promise<Identity>
  list(): Promise<readonly Agent[]>
  get(id: string): Promise<Agent>
  add(draft: Input<AgentDraft, 'heartbeat_enabled' | 'description' | 'daily_tokens'>): Promise<Agent>
  edit(id: string, patch: AgentPatch): Promise<Agent>
  remove(id: string): Promise<void>
  pause(id: string, reason?: string): Promise<Agent>
  resume(id: string): Promise<Agent>
  wake(id: string): Promise<Agent>
  report(id: string, worker: Record<string, unknown>, receipts?: Record<string, unknown>): Promise<Agent>
  keys(id: string): Promise<readonly AgentKey[]>
  newKey(id: string): Promise<NewAgentKey>
  revokeKey(id: string, keyId: string): Promise<AgentKey>
  rotateKey(id: string): Promise<NewAgentKey>
  receipts(): Promise<readonly AgentReceipts[]>
  operators(): Promise<readonly OperatorToken[]>
  newOperator(name: string): Promise<NewOperatorToken>
  revokeOperator(id: string): Promise<OperatorToken>
}

function fleetClient({ json }: Transport): FleetClient {
  const at = (id: string, rest = '') => `agents/${encodeURIComponent(id)}${rest}`
  const get = <T>(path: string) => json<T>({ method: 'GET', path })
  const post = <T>(path: string, body: unknown = {}, repeatable = false) => json<T>({ method: 'POST', path, body, repeatable })

  return {
    whoAmI: () => get('whoami'),
    list: async () => (await get<{ agents: Agent[] }>('agents')).agents,
    get: (id) => get(at(id)),
    add: (draft) => post('agents', draft),
    edit: (id, body) => json({ method: 'PATCH', path: at(id), body }),
    remove: async (id) => void (await json({ method: 'DELETE', path: at(id) })),
    pause: (id, reason = '') => post(at(id, '/pause'), { reason }, true),
    resume: (id) => post(at(id, '/resume'), {}, true),
    wake: (id) => post(at(id, '/wake'), {}, true),
    report: (id, worker, receipts) => post(at(id, '/report'), { worker, ...(receipts ? { receipts } : {}) }, true),
    keys: async (id) => (await get<{ keys: AgentKey[] }>(at(id, '/keys'))).keys,
    newKey: (id) => post(at(id, '/keys')),
    revokeKey: (id, keyId) => json({ method: 'DELETE', path: at(id, `/keys/${encodeURIComponent(keyId)}`) }),
    rotateKey: (id) => post(at(id, '/keys/rotate')),
    receipts: async () => (await get<{ receipts: AgentReceipts[] }>('receipts/status')).receipts,
    operators: async () => (await get<{ operators: OperatorToken[] }>('operators')).operators,
    newOperator: (name) => post('operators', { name }),
    revokeOperator: (id) => json({ method: 'DELETE', path: `operators/${encodeURIComponent(id)}` }),
  }
}

/** `T` with the fields `Filled` optional. */
type Input<T, Filled extends keyof T> = Omit<T, Filled> & Partial<Pick<T, Filled>>
