/** Asks the control plane about tasks: creating, claiming, leases, decisions and effects. */

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
import type { Input } from './inputs.ts'
import type { Transport } from './transport.ts'

export type NewTask = Input<TaskDraft, 'description' | 'priority' | 'labels' | 'depends_on' | 'context' | 'max_attempts'>

export type TaskClient = {
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

export function taskClient({ json }: Transport): TaskClient {
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
