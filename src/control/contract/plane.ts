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
  /** A number from 0 up to 1; jitter comes from here. */
  readonly random: () => number
  /** Bytes for tokens and keys. */
  readonly randomBytes: (count: number) => Uint8Array
  readonly leaseSeconds: number
  readonly approvalHours: number
  /** After how many days old records are deleted (docs/control-plane-operating.md); 0, which is the default: never. */
  readonly retentionDays?: number
  /** How many tasks that one agent created may be open at a time; default: 1,000. Operators are exempt. */
  readonly openTasksOfAgent?: number
  /** The most tokens that one run, or one error, may report; default: 100,000,000. */
  readonly mostTokensOfReport?: number
  readonly log: (level: 'info' | 'warn' | 'error', event: string, fields?: object) => void
}

/** An operation that happens at most once a key and answers the same each time (Idempotency-Key). */
export type Once = { readonly key: string; readonly digest: string }

export type TaskPlane = {
  /** With `once` the task and the kept reply are one transaction. */
  create(caller: Caller, draft: TaskDraft, once?: Once): Promise<{ readonly task: Task; readonly replayed: boolean }>
  /** All or none; at most 1,000. */
  createMany(caller: Caller, drafts: readonly TaskDraft[]): Promise<readonly Task[]>
  get(caller: Caller, id: string): Promise<Task>
  list(
    caller: Caller,
    query: TaskQuery,
  ): Promise<{ readonly tasks: readonly Task[]; readonly next: string | null; readonly counts: Readonly<Record<string, number>> }>
  edit(caller: Caller, id: string, patch: TaskPatch, version?: number): Promise<Task>
  /** Waits up to `wait_ms`; undefined when there was none, or `gone` was aborted. A task is never claimed for a caller that has gone. */
  claim(caller: Caller, request: ClaimRequest, gone: AbortSignal): Promise<Claim | undefined>
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
  /** The decision and the wake of its task are one transaction. */
  decide(caller: Caller, id: string, request: DecisionRequest): Promise<Approval>
  /** Once, by a run of the task it belongs to (or the agent, without a task), with the digest of what is about to be done. */
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
  /** A worker says what it is and how its receipts stand; answers its agent. */
  report(caller: Caller, id: string, worker: Record<string, unknown>, receipts?: Record<string, unknown>): Promise<Agent>
  keys(caller: Caller, id: string): Promise<readonly AgentKey[]>
  newKey(caller: Caller, id: string): Promise<NewAgentKey>
  /** Leases of the agent are released in the same transaction. */
  revokeKey(caller: Caller, id: string, keyId: string): Promise<AgentKey>
  /** Makes a new key and revokes all others in one transaction; running leases stay. */
  rotateKey(caller: Caller, id: string): Promise<NewAgentKey>
  receipts(
    caller: Caller,
  ): Promise<
    readonly { readonly agent_id: string; readonly receipts: Record<string, unknown> | null; readonly reported_at: string | null }[]
  >
}

export type AccessPlane = {
  /** Who the caller is, and at which control plane. */
  identityOf(caller: Caller): Promise<Identity>
  /** Who has this secret (an operator token, an agent key or a run token that is in force); undefined: nobody. */
  callerOf(secret: string): Promise<Caller | undefined>
  /** For cookies: the operator of this id, while the token is in force. */
  operator(id: string): Promise<{ readonly caller: Caller; readonly digest: string } | undefined>
  operators(caller: Caller): Promise<readonly OperatorToken[]>
  newOperator(caller: Caller, name: string): Promise<NewOperatorToken>
  revokeOperator(caller: Caller, id: string): Promise<OperatorToken>
  /** For `control init`, and for a token that CONTROLPLANE_OPERATOR_TOKEN brings; adds nothing when that one is there. */
  firstOperator(name: string, secret?: string): Promise<NewOperatorToken | undefined>
}

export type BudgetPlane = {
  get(caller: Caller): Promise<Budget>
  set(caller: Caller, patch: BudgetPatch): Promise<Budget>
  /** Every token that was ever counted, with its reason. */
  ledger(caller: Caller, query: LedgerQuery): Promise<{ readonly entries: readonly LedgerEntry[]; readonly next: number | null }>
  /** Tokens that a run may still reserve, the least of all its limits; null: no limit. */
  remaining(caller: Caller): Promise<number | null>
  reserve(caller: Caller, request: ReserveRequest): Promise<Reservation>
  settle(caller: Caller, request: SettleRequest): Promise<Settled>
}

export type RunPlane = {
  get(caller: Caller, id: string): Promise<Run>
  list(caller: Caller, query: RunQuery): Promise<{ readonly runs: readonly ListedRun[]; readonly next: string | null }>
  /** Appends to the log; `at` is the byte where the piece begins, so a piece sent twice is stored once. Capped at 8 MiB a run. */
  appendLog(caller: Caller, id: string, at: number, piece: string): Promise<{ readonly log_bytes: number; readonly log_truncated: boolean }>
  /** Bytes `from` up to and without `to`. */
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
  /** At most 1 MiB each and 16 a run; the same bytes again change nothing. `body` is base64. */
  putArtifact(
    caller: Caller,
    id: string,
    artifact: { readonly name: string; readonly digest: string; readonly body: string },
  ): Promise<{ readonly name: string; readonly digest: string; readonly bytes: number }>
  artifact(caller: Caller, id: string, name: string): Promise<{ readonly digest: string; readonly body: string }>
  addSession(caller: Caller, agentId: string, line: SessionLine): Promise<void>
  /** Oldest first, the last `limit`. */
  sessions(caller: Caller, agentId: string, limit: number): Promise<readonly SessionLine[]>
}

export type EventPlane = {
  list(caller: Caller, query: EventQuery): Promise<{ readonly events: readonly ControlEvent[]; readonly next: number | null }>
  /** Every event after `after` (default: from now on) that the caller may see, in order and without a gap, until the signal aborts. */
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
  /** POST activity: a completion ends the task and settles its tokens, an approval request asks, an error escalates; each one transaction. */
  activity(caller: Caller, post: ActivityPost): Promise<ActivityReply>
  /** Keeps a receipt of a hostd operation that was proxied. */
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
  /** Numbers for /metrics: tasks by status, runs by state, spent and reserved tokens, events. */
  figures(): Promise<Readonly<Record<string, number>>>
  /** Runs what the clock asks for: expired leases, expired approvals, schedules, the midnight of the budget. Called by the daemon about once a second. */
  tick(): Promise<void>
}
