/** Speaks to a control plane over HTTP with the shapes of the contract; the commands and workers use it. Every call rejects with PlaneRefusal. */

import { createParser } from 'eventsource-parser'
import { atEnd } from '../../kit/errors.ts'
import type {
  ActivityPost,
  ActivityReply,
  Approval,
  ApprovalQuery,
  ControlEvent,
  DecisionRequest,
  EventQuery,
  SeedState,
} from '../contract/activity-shapes.ts'
import type { Caller } from '../contract/caller.ts'
import type {
  Agent,
  AgentDraft,
  AgentKey,
  Identity,
  LedgerQuery,
  OperatorToken,
  Reservation,
  ReserveRequest,
  Settled,
  SettleRequest,
} from '../contract/fleet-shapes.ts'
import type {
  AccessPlane,
  ApprovalPlane,
  BudgetPlane,
  EventPlane,
  FleetPlane,
  RunPlane,
  SchedulePlane,
  SeedPlane,
  TaskPlane,
} from '../contract/plane.ts'
import { countRefusals } from '../contract/plane-refusal.ts'
import type { RunQuery, SessionLine } from '../contract/run-shapes.ts'
import type {
  Beat,
  Claim,
  ClaimRequest,
  ControlSchedule,
  Effect,
  EffectReply,
  EffectRequest,
  ReleaseRequest,
  ResolveRequest,
  Task,
  TaskDraft,
  TaskQuery,
} from '../contract/task-shapes.ts'
import type { HostdAnswer } from '../hostd/hostd-proxy.ts'
import { createTransport, type Transport, type TransportOptions } from './transport.ts'

export type ControlClient = {
  readonly tasks: TaskClient
  readonly fleet: FleetClient
  readonly runs: RunClient
  readonly approvals: Own<Pick<ApprovalPlane, 'get' | 'use'>> & {
    list(query?: Partial<ApprovalQuery>): ReturnType<ApprovalPlane['list']>
    decide(id: string, request: Input<DecisionRequest, 'note'>): Promise<Approval>
  }
  readonly budget: Own<Pick<BudgetPlane, 'get' | 'set'>> & {
    ledger(query?: Partial<LedgerQuery>): ReturnType<BudgetPlane['ledger']>
    reserve(request: Input<ReserveRequest, 'purpose'>): Promise<Reservation>
    settle(request: Input<SettleRequest, 'model'>): Promise<Settled>
  }
  readonly events: {
    list(query?: Partial<EventQuery>): ReturnType<EventPlane['list']>
    /** Reconnects after a broken connection, without a gap. Ends when the signal aborts. */
    follow(query: FollowQuery, signal: AbortSignal): AsyncGenerator<ControlEvent>
  }
  readonly schedules: Own<Omit<SchedulePlane, 'add'>> & {
    /** Takes the body of POST schedules; the daemon fills in what is missing. */
    add(draft: object): Promise<ControlSchedule>
  }
  /** Returns the answers of the seed's routes. */
  readonly seed: Own<Omit<SeedPlane, 'state'>> & { state(signal?: AbortSignal): Promise<SeedState> }
  /** With a key, a repeated post counts once. */
  activity(post: Record<string, unknown> & Pick<ActivityPost, 'event_type'>, key?: string): Promise<ActivityReply>
  readonly hostd: {
    call(request: { readonly op: string; readonly params?: Record<string, unknown>; readonly approval_id?: string }): Promise<HostdAnswer>
    ops(): Promise<readonly HostdOperation[]>
  }
  /** Returns the text of /metrics. */
  metrics(): Promise<string>
  /** Sends requests for routes without a method here. */
  readonly transport: ReturnType<typeof createTransport>
}

type HostdOperation = Record<string, unknown> & { readonly op: string }

export function createControlClient(options: TransportOptions): ControlClient {
  const transport = createTransport(options)
  const { json } = transport
  const get = <T>(path: string, query = {}) => json<T>({ method: 'GET', path, query })
  const post = posting(transport)

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
    events: { list: (query = {}) => get('activity', query), follow: (query, signal) => followEvents(transport, options, query, signal) },
    schedules: {
      list: async () => (await get<{ schedules: ControlSchedule[] }>('schedules')).schedules,
      add: (draft) => post('schedules', draft),
      setEnabled: (id, enabled) => post(`schedules/${encodeURIComponent(id)}/${enabled ? 'enable' : 'disable'}`),
      remove: async (id) => void (await json({ method: 'DELETE', path: `schedules/${encodeURIComponent(id)}` })),
    },
    seed: {
      state: (signal) => json({ method: 'GET', path: 'state', signal }),
      tasks: (role) => get('tasks', { role }),
      approvals: (agentId) => get('approvals', { agent_id: agentId }),
    },
    activity: (body, key) => post('activity', body, key),
    hostd: {
      call: (request) => json({ method: 'POST', path: 'hostd', body: { params: {}, ...request }, timeoutMs: 600_000 }),
      ops: async () => (await get<{ ops: HostdOperation[] }>('hostd/ops')).ops,
    },
    metrics: async () => (await transport.send({ method: 'GET', path: '/metrics' })).text(),
  }
}

export type NewTask = Input<TaskDraft, 'description' | 'priority' | 'labels' | 'depends_on' | 'context' | 'max_attempts'>

type TaskClient = Own<Pick<TaskPlane, 'get' | 'edit' | 'effects' | 'endEffect'>> & {
  /** Creates one task however often it is called with the same key; without a key only the client itself repeats it, after a broken connection. */
  create(draft: NewTask, key?: string): Promise<Task>
  createMany(drafts: readonly NewTask[], key?: string): Promise<readonly Task[]>
  list(query?: Partial<TaskQuery>): ReturnType<TaskPlane['list']>
  /** Waits up to `wait_ms`; undefined when there was no task. Never repeated: a lost answer leaves a lease that expires. */
  claim(request: Input<ClaimRequest, 'wait_ms' | 'labels'>, signal?: AbortSignal): Promise<Claim | undefined>
  /** Never repeated: a beat that waits would come too late, and the next one follows. */
  beat(id: string, signal?: AbortSignal): Promise<Beat>
  release(id: string, request: Input<ReleaseRequest, 'outcome'>): Promise<Task>
  cancel(id: string, note?: string): Promise<Task>
  retry(id: string, note?: string): Promise<Task>
  resolve(id: string, request: Input<ResolveRequest, 'note'>): Promise<Task>
  beginEffect(id: string, request: Input<EffectRequest, 'idempotent' | 'description'>): Promise<EffectReply>
}

/** Returns a POST that may be repeated: one key makes it count once. */
function posting({ json }: Transport) {
  return <T>(path: string, body: unknown = {}, key: string = crypto.randomUUID()) =>
    json<T>({ method: 'POST', path, body, headers: { 'idempotency-key': key }, repeatable: true })
}

function taskClient(transport: Transport): TaskClient {
  const { json } = transport
  const at = (id: string, rest = '') => `tasks/${encodeURIComponent(id)}${rest}`
  const post = posting(transport)
  return {
    create: (draft, key) => post('tasks', draft, key),
    createMany: async (tasks, key) => (await post<{ tasks: Task[] }>('tasks/batch', { tasks }, key)).tasks,
    get: (id) => json({ method: 'GET', path: at(id) }),
    list: (query = {}) => json({ method: 'GET', path: 'tasks', query: { ...query, view: 'full' } }),
    edit: (id, body, version) =>
      json({ method: 'PATCH', path: at(id), body, headers: version === undefined ? undefined : { 'if-match': `"${version}"` } }),
    claim: (body, signal) => json({ method: 'POST', path: 'tasks/claim', body, timeoutMs: (body.wait_ms ?? 0) + 15_000, signal }),
    beat: (id, signal) => json({ method: 'POST', path: at(id, '/beat'), body: {}, signal }),
    release: (id, request) => post(at(id, '/release'), request),
    cancel: (id, note = '') => post(at(id, '/cancel'), { note }),
    retry: (id, note = '') => post(at(id, '/retry'), { note }),
    resolve: (id, request) => post(at(id, '/resolve'), request),
    effects: async (id) => (await json<{ effects: Effect[] }>({ method: 'GET', path: at(id, '/effects') })).effects,
    // The client does not repeat an intent: the run decides whether it is in doubt.
    beginEffect: (id, request) => post(at(id, '/effects'), request),
    endEffect: (id, key, result) => json({ method: 'POST', path: at(id, '/effects/done'), body: { key, result }, repeatable: true }),
  }
}

/** `body` of an artifact is base64, its `digest` the SHA-256 of the bytes in hex. */
type RunClient = Own<Pick<RunPlane, 'get' | 'appendLog' | 'deliver' | 'putArtifact' | 'addSession'>> & {
  list(query?: Partial<RunQuery>): ReturnType<RunPlane['list']>
  /** Returns the bytes from `from` up to and without `to` (default: the end). */
  log(id: string, from?: number, to?: number): ReturnType<RunPlane['log']>
  /** Returns the bytes as the worker delivered them. */
  artifact(id: string, name: string): Promise<{ readonly digest: string; readonly bytes: Uint8Array }>
  sessions(agentId: string, limit?: number): Promise<readonly SessionLine[]>
}

function runClient(transport: Transport): RunClient {
  const { json, send } = transport
  const post = posting(transport)
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
    addSession: async (agentId, body) => void (await post(sessionsAt(agentId), body)),
    sessions: async (agentId, limit) =>
      (await json<{ sessions: SessionLine[] }>({ method: 'GET', path: sessionsAt(agentId), query: { limit } })).sessions,
  }
}

export type FleetClient = Own<Omit<FleetPlane, 'add' | 'pause'> & Pick<AccessPlane, 'operators' | 'newOperator' | 'revokeOperator'>> & {
  /** Returns the owner of this client's token. */
  whoAmI(): Promise<Identity>
  add(draft: Input<AgentDraft, 'heartbeat_enabled' | 'description' | 'daily_tokens'>): Promise<Agent>
  pause(id: string, reason?: string): Promise<Agent>
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
    report: (id, worker, receipts) => post(at(id, '/report'), { worker, receipts }, true),
    keys: async (id) => (await get<{ keys: AgentKey[] }>(at(id, '/keys'))).keys,
    newKey: (id) => post(at(id, '/keys')),
    revokeKey: (id, keyId) => json({ method: 'DELETE', path: at(id, `/keys/${encodeURIComponent(keyId)}`) }),
    rotateKey: (id) => post(at(id, '/keys/rotate')),
    receipts: async () => (await get<{ receipts: Awaited<ReturnType<FleetPlane['receipts']>> }>('receipts/status')).receipts,
    operators: async () => (await get<{ operators: OperatorToken[] }>('operators')).operators,
    newOperator: (name) => post('operators', { name }),
    revokeOperator: (id) => json({ method: 'DELETE', path: `operators/${encodeURIComponent(id)}` }),
  }
}

/** Makes the fields `Filled` of `T` optional. */
type Input<T, Filled extends keyof T> = Omit<T, Filled> & Partial<Pick<T, Filled>>

/** Removes the caller from the methods of a part of the plane: the token of the client identifies it. */
type Own<Part> = {
  [K in keyof Part]: Part[K] extends (caller: Caller, ...rest: infer Rest) => infer Result ? (...rest: Rest) => Result : never
}

type FollowQuery = Partial<Pick<EventQuery, 'after' | 'type' | 'task_id' | 'run_id' | 'agent_id'>>

/** The connection is dead when no ping arrives for this many ms. */
const silentMs = 40_000
const longestWaitMs = 5_000

/** Yields events until the signal aborts. @throws PlaneRefusal when the token is not in force or the query is wrong */
export async function* followEvents(
  transport: Transport,
  options: Pick<TransportOptions, 'sleep' | 'random'>,
  query: FollowQuery,
  signal: AbortSignal,
): AsyncGenerator<ControlEvent> {
  const refusals = countRefusals()
  const state: { last: number | undefined; failures: number } = { last: query.after, failures: 0 }
  while (!signal.aborted) {
    try {
      for await (const event of oneStream(transport, { ...query, after: state.last }, signal)) {
        state.failures = 0
        refusals.reset()
        if (event === 'open') continue
        state.last = event.id
        yield event
      }
    } catch (error) {
      if (signal.aborted) return
      if (refusals.isFinal(error)) throw error
    }
    state.failures += 1
    await options.sleep(Math.min(longestWaitMs, 50 * 2 ** Math.min(state.failures, 10)) * (0.5 + options.random() / 2), signal)
  }
}

type StreamQuery = { readonly [Name in keyof FollowQuery]: FollowQuery[Name] | undefined }

async function* oneStream(transport: Transport, query: StreamQuery, signal: AbortSignal): AsyncGenerator<ControlEvent | 'open'> {
  const silence = new AbortController()
  const both = AbortSignal.any([signal, silence.signal])
  const state: { timer?: ReturnType<typeof setTimeout> } = {}
  const restartTimer = () => {
    clearTimeout(state.timer)
    state.timer = setTimeout(() => silence.abort(), silentMs)
  }
  restartTimer()
  using _end = atEnd(() => {
    clearTimeout(state.timer)
    silence.abort()
  })
  const response = await transport.send({
    ...{ method: 'GET', path: 'events', query, signal: both, repeatable: false, timeoutMs: 2_147_483_647 },
    headers: { accept: 'text/event-stream' },
  })
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) throw new Error('the answer is not a stream of events')
  yield 'open'
  for await (const frame of framesOf(response, restartTimer)) yield frame
}

async function* framesOf(response: Response, restartTimer: () => void): AsyncGenerator<ControlEvent> {
  const decoder = new TextDecoder()
  const texts: string[] = []
  const parser = createParser({ onEvent: ({ data }) => texts.push(data) })
  for await (const piece of response.body ?? []) {
    restartTimer()
    parser.feed(decoder.decode(piece, { stream: true }))
    for (const text of texts.splice(0)) yield JSON.parse(text)
  }
}
