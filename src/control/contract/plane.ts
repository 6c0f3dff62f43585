/** Defines the control plane: everything that its routes, its worker in the same process and its tests can ask of it. Methods reject with PlaneRefusal. */

import type {
  ActivityPost,
  ActivityReply,
  Approval,
  ApprovalQuery,
  ApprovedOperation,
  ControlEvent,
  DecisionRequest,
  EventQuery,
  SeedApprovals,
  SeedState,
  SeedTask,
} from './activity-shapes.ts'
import type { Caller } from './caller.ts'
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
} from './fleet-shapes.ts'
import type { ListedRun, Run, RunQuery, SessionLine } from './run-shapes.ts'
import type { Store } from './store-port.ts'
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
  ScheduleDraft,
  Task,
  TaskDraft,
  TaskPatch,
  TaskQuery,
} from './task-shapes.ts'

export type PlaneOptions = {
  readonly store: Store
  readonly now: () => number
  /** Returns a number from 0 up to 1 for jitter. */
  readonly random: () => number
  /** Returns bytes for tokens and keys. */
  readonly randomBytes: (count: number) => Uint8Array
  readonly leaseSeconds: number
  readonly approvalHours: number
  /** Old records are deleted after this many days (docs/control-plane-operating.md); with 0, the default, they stay. */
  readonly retentionDays?: number
  /** Limits how many tasks that one agent created may be open at a time; default: 1,000. Operators are exempt. */
  readonly openTasksOfAgent?: number
  /** Limits the tokens that one run, or one error, may report; default: 100,000,000. */
  readonly mostTokensOfReport?: number
  readonly log: (level: 'info' | 'warn' | 'error', event: string, fields?: object) => void
}

/** Describes an operation that happens at most once for each key and gives the same answer each time (Idempotency-Key). */
export type Once = { readonly key: string; readonly digest: string }

/** `counts`: how many tasks there are in each status. */
export type TaskPage = { readonly tasks: readonly Task[]; readonly next: string | null; readonly counts: Readonly<Record<string, number>> }

export type TaskPlane = {
  /** Creates a task, with `once` in the same transaction as the stored reply. */
  create(caller: Caller, draft: TaskDraft, once?: Once): Promise<{ readonly task: Task; readonly replayed: boolean }>
  /** Creates all tasks or none; at most 1,000. */
  createMany(caller: Caller, drafts: readonly TaskDraft[]): Promise<readonly Task[]>
  get(caller: Caller, id: string): Promise<Task>
  list(caller: Caller, query: TaskQuery): Promise<TaskPage>
  edit(caller: Caller, id: string, patch: TaskPatch, version?: number): Promise<Task>
  /** Waits up to `wait_ms`; returns undefined when there was no task or the caller disconnected. It never claims a task for a disconnected caller. */
  claim(caller: Caller, request: ClaimRequest, disconnected: AbortSignal): Promise<Claim | undefined>
  beat(caller: Caller, id: string): Promise<Beat>
  release(caller: Caller, id: string, request: ReleaseRequest): Promise<Task>
  cancel(caller: Caller, id: string, note: string): Promise<Task>
  retry(caller: Caller, id: string, note: string): Promise<Task>
  resolve(caller: Caller, id: string, request: ResolveRequest): Promise<Task>
  effects(caller: Caller, id: string): Promise<readonly Effect[]>
  beginEffect(caller: Caller, id: string, request: EffectRequest): Promise<EffectReply>
  endEffect(caller: Caller, id: string, key: string, result: unknown): Promise<EffectReply>
}

export type ApprovalPlane = {
  get(caller: Caller, id: string): Promise<Approval>
  list(caller: Caller, query: ApprovalQuery): Promise<{ readonly approvals: readonly Approval[]; readonly next: string | null }>
  /** Records the decision and wakes its task in one transaction. */
  decide(caller: Caller, id: string, request: DecisionRequest): Promise<Approval>
  /** Uses an approval once: by a run of its task (or by the agent, without a task), with the digest of the operation that follows. */
  use(caller: Caller, id: string, digest?: string): Promise<ApprovedOperation>
}

export type FleetPlane = {
  list(caller: Caller): Promise<readonly Agent[]>
  get(caller: Caller, id: string): Promise<Agent>
  add(caller: Caller, draft: AgentDraft): Promise<Agent>
  edit(caller: Caller, id: string, patch: AgentPatch): Promise<Agent>
  remove(caller: Caller, id: string): Promise<void>
  pause(caller: Caller, id: string, reason: string): Promise<Agent>
  resume(caller: Caller, id: string): Promise<Agent>
  wake(caller: Caller, id: string): Promise<Agent>
  /** Stores what a worker reports about itself and its receipts; returns its agent. */
  report(caller: Caller, id: string, worker: Record<string, unknown>, receipts?: Record<string, unknown>): Promise<Agent>
  keys(caller: Caller, id: string): Promise<readonly AgentKey[]>
  /** Revokes the key again when `signal` aborted before it could be shown; `rotateKey` and `newOperator` too. */
  newKey(caller: Caller, id: string, signal?: AbortSignal): Promise<NewAgentKey>
  /** Releases the leases of the agent in the same transaction. */
  revokeKey(caller: Caller, id: string, keyId: string): Promise<AgentKey>
  /** Makes a new key and revokes all others in one transaction; running leases stay. */
  rotateKey(caller: Caller, id: string, signal?: AbortSignal): Promise<NewAgentKey>
  receipts(
    caller: Caller,
  ): Promise<
    readonly { readonly agent_id: string; readonly receipts: Record<string, unknown> | null; readonly reported_at: string | null }[]
  >
}

export type AccessPlane = {
  /** Returns the owner of a credential, and the id of this control plane. */
  identityOf(caller: Caller): Promise<Identity>
  /** Finds the owner of a secret (an operator token, an agent key or a run token in force); undefined when no one has it. */
  callerOf(secret: string): Promise<Caller | undefined>
  /** Finds the operator of a cookie, while the token is in force and the session was not ended. */
  operator(id: string, session?: string): Promise<{ readonly caller: Caller; readonly digest: string } | undefined>
  /** Ends the session of a browser for good; its id is stored until its cookie expires. */
  endSession(session: string, expires: number): Promise<void>
  operators(caller: Caller): Promise<readonly OperatorToken[]>
  newOperator(caller: Caller, name: string, signal?: AbortSignal): Promise<NewOperatorToken>
  revokeOperator(caller: Caller, id: string): Promise<OperatorToken>
  /** Adds the first operator for `control init`, or the token that CONTROLPLANE_OPERATOR_TOKEN brings; adds nothing when it exists. */
  firstOperator(name: string, secret?: string): Promise<NewOperatorToken | undefined>
}

export type BudgetPlane = {
  get(caller: Caller): Promise<Budget>
  set(caller: Caller, patch: BudgetPatch): Promise<Budget>
  /** Returns every counted token with its reason. */
  ledger(caller: Caller, query: LedgerQuery): Promise<{ readonly entries: readonly LedgerEntry[]; readonly next: number | null }>
  /** Returns the tokens that a run may still reserve, the least of all its limits; null without a limit. */
  remaining(caller: Caller): Promise<number | null>
  reserve(caller: Caller, request: ReserveRequest): Promise<Reservation>
  settle(caller: Caller, request: SettleRequest): Promise<Settled>
}

export type RunPlane = {
  get(caller: Caller, id: string): Promise<Run>
  list(caller: Caller, query: RunQuery): Promise<{ readonly runs: readonly ListedRun[]; readonly next: string | null }>
  /** Appends to the log; `at` is the byte where the piece begins, so a piece sent twice is stored once. A run's log has at most 8 MiB. */
  appendLog(caller: Caller, id: string, at: number, piece: string): Promise<{ readonly log_bytes: number; readonly log_truncated: boolean }>
  /** Returns the bytes from `from` up to and without `to`. */
  log(caller: Caller, id: string, from: number, to: number): Promise<{ readonly bytes: Uint8Array; readonly total: number }>
  /** Resolves once the log is longer than `from`, the run has ended, or the signal aborts. */
  logGrows(caller: Caller, id: string, from: number, signal: AbortSignal): Promise<void>
  deliver(
    caller: Caller,
    id: string,
    delivery: {
      readonly manifest?: Record<string, unknown>
      readonly changes?: 'none' | 'waiting' | 'applied' | 'dropped'
      readonly skill?: string
    },
  ): Promise<Run>
  /** Stores at most 1 MiB each and 16 artifacts a run; the same bytes again change nothing. `body` is base64, `digest` SHA-256 in hex. */
  putArtifact(
    caller: Caller,
    id: string,
    artifact: { readonly name: string; readonly digest: string; readonly body: string },
  ): Promise<{ readonly name: string; readonly digest: string; readonly bytes: number }>
  artifact(caller: Caller, id: string, name: string): Promise<{ readonly digest: string; readonly body: string }>
  addSession(caller: Caller, agentId: string, line: SessionLine): Promise<void>
  /** Returns the last `limit` lines, oldest first. */
  sessions(caller: Caller, agentId: string, limit: number): Promise<readonly SessionLine[]>
}

export type EventPlane = {
  list(caller: Caller, query: EventQuery): Promise<{ readonly events: readonly ControlEvent[]; readonly next: number | null }>
  /** Yields every event after `after` (default: from now on) that the caller may see, in order and without a gap, until the signal aborts. */
  follow(
    caller: Caller,
    query: Pick<EventQuery, 'after' | 'type' | 'task_id' | 'run_id' | 'agent_id'>,
    signal: AbortSignal,
  ): AsyncIterable<ControlEvent>
}

export type SchedulePlane = {
  list(caller: Caller): Promise<readonly ControlSchedule[]>
  add(caller: Caller, draft: ScheduleDraft): Promise<ControlSchedule>
  setEnabled(caller: Caller, id: string, enabled: boolean): Promise<ControlSchedule>
  remove(caller: Caller, id: string): Promise<void>
}

export type SeedPlane = {
  state(caller: Caller): Promise<SeedState>
  tasks(caller: Caller, role?: string): Promise<{ readonly tasks: readonly SeedTask[] }>
  approvals(caller: Caller, agentId?: string): Promise<SeedApprovals>
}

export type Plane = {
  readonly tasks: TaskPlane
  readonly approvals: ApprovalPlane
  readonly fleet: FleetPlane
  readonly access: AccessPlane
  readonly budget: BudgetPlane
  readonly runs: RunPlane
  readonly events: EventPlane
  readonly schedules: SchedulePlane
  readonly seed: SeedPlane
  /** Handles POST activity: a completion ends the task and settles its tokens, an approval request asks, an error escalates; each in one transaction. */
  activity(caller: Caller, post: ActivityPost): Promise<ActivityReply>
  /** Keeps a receipt of a hostd operation that the plane passed on. */
  noteHostd(
    caller: Caller,
    call: {
      readonly op: string
      readonly params: Record<string, unknown>
      readonly ok: boolean
      readonly exitCode: number | null
      readonly output: string
    },
  ): Promise<void>
  /** Returns the numbers for /metrics: tasks by status, runs by state, spent and reserved tokens, events. */
  figures(): Promise<Readonly<Record<string, number>>>
  /** Handles what has become due: expired leases and approvals, schedules, the midnight of the budget. The daemon calls it about once a second. */
  tick(): Promise<void>
}
