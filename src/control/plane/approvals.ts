/** Keeps approvals: a run asks, an operator or the clock answers once, and the run uses the answer once. */

import { errorText } from '../../kit/errors.ts'
import { digest } from '../../kit/sha256.ts'
import { type Approval, type ApprovalQuery, type ApprovedOperation, approval, type DecisionRequest } from '../contract/activity-shapes.ts'
import { assertSelf, type Caller, onlyOperator, signatureOf } from '../contract/caller.ts'
import type { ApprovalPlane } from '../contract/plane.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import type { Command, Row } from '../contract/store-port.ts'
import {
  idOf,
  idOrNull,
  int,
  intOrNull,
  marks,
  nextId,
  numberOf,
  object,
  type PlaneContext,
  queryNumber,
  queryOne,
  text,
  textOrNull,
  time,
  timeOrNull,
  whereOf,
} from './command.ts'
import { recordEvent } from './events.ts'
import { blockTask, wakeTask } from './tasks/end-task.ts'
import { lockLease } from './tasks/task-change.ts'

export function createApprovalPlane(context: PlaneContext): ApprovalPlane {
  const { store } = context
  return {
    async get(caller, id) {
      const result = approvalOf(await store.read(() => readApproval(id)))
      assertSelf(caller, result.agent_id, `read ${id}`)
      return result
    },
    list: async (caller, query) => await store.read(() => listApprovals(caller, query)),
    async decide(caller, id, request) {
      onlyOperator(caller, 'decide approvals')
      const decided = await store.write(() => decideApproval(context, { caller, id, request }))
      if (decided instanceof PlaneRefusal) throw decided
      return decided
    },
    async use(caller, id, digest) {
      if (caller.kind !== 'run' && caller.kind !== 'agent')
        throw new PlaneRefusal('forbidden', 'only the run or the agent that asked for an approval may use it')
      return await store.write(() => useApproval(context, { caller, id, digest }))
    },
  }
}

type ApprovalPage = Awaited<ReturnType<ApprovalPlane['list']>>

/** Lists approvals, the newest first. An agent and its runs see their own. */
function* listApprovals(caller: Caller, { state, agent_id, task_id, limit, after }: ApprovalQuery): Command<ApprovalPage> {
  if (caller.kind === 'seed') throw new PlaneRefusal('forbidden', 'the shared secret reads approvals only by GET approvals?agent_id=')
  const agentId = caller.kind === 'operator' ? agent_id : caller.id
  if (agent_id !== undefined) assertSelf(caller, agent_id, 'list its approvals')
  const [where, params] = whereOf([
    ['state = ?', state],
    ['agent_id = ?', agentId],
    ['task_id = ?', task_id === undefined ? undefined : numberOf(task_id)],
    ['id < ?', after === undefined ? undefined : numberOf(after)],
  ])
  const rows = yield [`SELECT * FROM approvals ${where} ORDER BY id DESC LIMIT ?`, [...params, limit + 1]]
  const approvals = rows.slice(0, limit).map(approvalOf)
  return { approvals, next: rows.length > limit ? (approvals.at(-1)?.approval_id ?? null) : null }
}

type ApprovalQuestion = {
  readonly caller: Caller
  readonly agentId: string
  readonly role: string | null
  /** The task waits for the answer when `runId` is set; without it the question only names the task. */
  readonly taskId: number | null
  readonly runId: number | null
  readonly operation: string
  readonly reasoning: string
  readonly estimatedTokens: number
  readonly details: Readonly<Record<string, unknown>>
}

/**
 * Returns the digest of exactly what an approval permits; whoever uses it must send the same digest. @throws PlaneRefusal bad_request for
 * text with half of a character
 */
export function operationDigest(operation: string, details: Readonly<Record<string, unknown>>): string {
  try {
    return digest({ operation, details })
  } catch (error) {
    const why = errorText(error)
    throw new PlaneRefusal('bad_request', `"details" of an approval request must be plain JSON: ${why}`)
  }
}

/** Asks an operator. @returns the number of the approval */
export function* requestApproval(context: PlaneContext, question: ApprovalQuestion): Command<number> {
  const { caller, agentId, role, taskId, runId, operation } = question
  const id = yield* insertApproval(context, question)
  if (taskId !== null && runId !== null) yield* blockTask(context, taskId, 'awaiting_approval', null, { actor: signatureOf(caller) })
  const data = { approval_id: idOf('APPR', id), operation }
  yield* recordEvent(context, { type: 'approval.requested', actor: signatureOf(caller), taskId, runId, agentId, role, data })
  return id
}

function* insertApproval(context: PlaneContext, question: ApprovalQuestion): Command<number> {
  const { agentId, role, taskId, runId, operation, reasoning, estimatedTokens, details } = question
  const id = yield* nextId('approvals')
  const now = context.now()
  const columns = {
    ...{ id, task_id: taskId, run_id: runId, agent_id: agentId, role, operation, reasoning, estimated_tokens: estimatedTokens },
    details: JSON.stringify(details),
    digest: operationDigest(operation, details),
    state: 'pending',
    created_at: now,
    expires_at: now + context.options.approvalHours * 3_600_000,
  }
  const names = Object.keys(columns)
  yield [`INSERT INTO approvals (${names.join(', ')}) VALUES (${marks(names)})`, Object.values(columns)]
  return id
}

/** Finds the same question of the same run: a run that lost the answer asks again. */
export function* sameQuestion(runId: string, { operation, details }: Pick<ApprovalQuestion, 'operation' | 'details'>) {
  const params = [numberOf(runId), operationDigest(operation, details)]
  return yield* queryOne('SELECT * FROM approvals WHERE run_id = ? AND digest = ? ORDER BY id DESC LIMIT 1', params)
}

export type QuestionOwner = { readonly agentId: string; readonly isRun: boolean; readonly isKnown: boolean }

/**
 * Counts, up to `most`, the questions that wait for an operator: those of one owner, or all. Questions that others ask in the name of an
 * agent do not count against its runs, and all names that no operator added share one count.
 */
export function* openQuestions({ asker, most }: { readonly asker?: QuestionOwner; readonly most: number }): Command<number> {
  const rows = `SELECT 1 FROM approvals WHERE state = 'pending'${asker === undefined ? '' : conditionOf(asker)} LIMIT ?`
  const params = asker?.isKnown ? [asker.agentId, most] : [most]
  return yield* queryNumber(`SELECT COUNT(*) AS value FROM (${rows}) AS counted`, params)
}

function conditionOf({ isRun, isKnown }: QuestionOwner): string {
  const ofAgent = isKnown ? 'agent_id = ?' : 'agent_id NOT IN (SELECT id FROM agents)'
  return ` AND ${ofAgent} AND run_id IS ${isRun ? 'NOT NULL' : 'NULL'}`
}

const stateOf = { approve: 'approved', reject: 'rejected', revise: 'revise' } as const

type DecisionCall = { readonly caller: Caller; readonly id: string; readonly request: DecisionRequest }

/**
 * Records the decision of an operator. @throws PlaneRefusal not_found; already_decided with the first answer in `details.approval`, also when
 * the question has expired
 */
function* decideApproval(context: PlaneContext, { caller, id, request }: DecisionCall): Command<Approval | PlaneRefusal> {
  const row = yield* lockApproval(context, id)
  if (row.state !== 'pending') return alreadyDecided(row)
  if (isOver(context, row)) return alreadyDecided(yield* expireRow(context, row))
  const { decision, note } = request
  return approvalOf(yield* answer(context, row, { state: stateOf[decision], note: note || null, actor: signatureOf(caller) }))
}

function alreadyDecided(row: Row): PlaneRefusal {
  const approval = approvalOf(row)
  const by = approval.decided_by === null ? '' : ` by ${approval.decided_by}`
  return new PlaneRefusal('already_decided', `${approval.approval_id} is ${approval.state}${by}; the first answer stands`, { approval })
}

function isOver(context: Pick<PlaneContext, 'now'>, row: Row): boolean {
  return int(row, 'expires_at') <= context.now()
}

/** Expires a question that nobody answered, which refuses it, or an approval that nobody used. */
function* expireRow(context: PlaneContext, row: Row): Command<Row> {
  const wasApproved = row.state === 'approved'
  const note = wasApproved ? textOrNull(row, 'note') : `nobody answered within ${context.options.approvalHours} h`
  return yield* answer(context, row, { state: 'expired', note, actor: 'clock' })
}

type ApprovalAnswer = { readonly state: Approval['state']; readonly note: string | null; readonly actor: string }

function* answer(context: PlaneContext, row: Row, { state, note, actor }: ApprovalAnswer): Command<Row> {
  const answered = (yield* changeState(context, row, { state, note, actor })) ?? row
  const facts = { note: textOrNull(answered, 'note') }
  yield* recordApproval(context, answered, { type: `approval.${text(answered, 'state')}`, actor, runId: intOrNull(row, 'run_id'), facts })
  const taskId = intOrNull(row, 'task_id')
  // Without a run the question only named the task, which waits for nothing or for another answer.
  if (taskId === null || row.run_id === null) return answered
  yield* addAnswerToTask(context, { taskId, row: answered })
  yield* wakeTask(context, taskId, actor)
  return answered
}

/** Changes the state. After the decision an approval may be used for as long as the question may wait. */
function* changeState(context: PlaneContext, row: Row, { state, note, actor }: ApprovalAnswer): Command<Row | undefined> {
  const now = context.now()
  const wasApproved = row.state === 'approved'
  const decided = wasApproved ? [textOrNull(row, 'decided_by'), intOrNull(row, 'decided_at')] : [actor, now]
  const expiresAt = state === 'approved' ? now + context.options.approvalHours * 3_600_000 : int(row, 'expires_at')
  return yield* queryOne(
    'UPDATE approvals SET state = ?, note = ?, decided_by = ?, decided_at = ?, expires_at = ? WHERE id = ? RETURNING *',
    [state, note, ...decided, expiresAt, int(row, 'id')],
  )
}

type ApprovalEvent = { readonly type: string; readonly actor: string; readonly runId?: number | null; readonly facts?: object }

function* recordApproval(context: PlaneContext, row: Row, { facts, ...event }: ApprovalEvent): Command<void> {
  yield* recordEvent(context, {
    ...event,
    taskId: intOrNull(row, 'task_id'),
    agentId: text(row, 'agent_id'),
    role: textOrNull(row, 'role'),
    data: { approval_id: idOf('APPR', int(row, 'id')), operation: text(row, 'operation'), ...facts },
  })
}

/** Adds the answer to the context of the task, where its next run finds it: `approvals: {"APPR-001": {state, operation, note}}`. */
function* addAnswerToTask(context: PlaneContext, { taskId, row }: { readonly taskId: number; readonly row: Row }): Command<void> {
  const task = yield* queryOne('SELECT context FROM tasks WHERE id = ?', [taskId])
  if (!task) return
  const taskContext = object(task, 'context')
  const before = typeof taskContext.approvals === 'object' && taskContext.approvals !== null ? taskContext.approvals : {}
  const answered = { state: text(row, 'state'), operation: text(row, 'operation'), note: textOrNull(row, 'note') }
  const approvals = { ...before, [idOf('APPR', int(row, 'id'))]: answered }
  yield [
    'UPDATE tasks SET context = ?, updated_at = ?, version = version + 1 WHERE id = ?',
    [JSON.stringify({ ...taskContext, approvals }), context.now(), taskId],
  ]
}

const atOnce = 100

/** Expires each overdue approval in a transaction of its own, together with the wake of its task. */
export async function expireApprovals(context: PlaneContext): Promise<void> {
  const { store } = context
  for (const id of await store.read(() => overdue(context))) await store.write(() => expireOne(context, id))
}

function* overdue(context: PlaneContext): Command<readonly string[]> {
  const rows = yield [
    `SELECT id FROM approvals WHERE state IN ('pending', 'approved') AND expires_at <= ? ORDER BY id LIMIT ${atOnce}`,
    [context.now()],
  ]
  return rows.map((row) => idOf('APPR', int(row, 'id')))
}

function* expireOne(context: PlaneContext, id: string): Command<void> {
  const row = yield* lockApproval(context, id)
  const isOpen = row.state === 'pending' || row.state === 'approved'
  if (isOpen && isOver(context, row)) yield* expireRow(context, row)
}

type UseCall = { readonly caller: Caller; readonly id: string; readonly digest: string | undefined }

/** Marks an approval as used. @throws PlaneRefusal not_found, forbidden, lease_lost; conflict when it was used before or permits another operation */
function* useApproval(context: PlaneContext, { caller, id, digest }: UseCall): Command<ApprovedOperation> {
  if (caller.kind === 'run') yield* lockLease(context, caller, caller.taskId)
  const row = yield* lockApproval(context, id)
  assertOwn(caller, row)
  assertUsable(context, row)
  if (digest !== undefined && digest !== row.digest)
    throw new PlaneRefusal('conflict', `${id} permits "${text(row, 'operation')}", and this is another operation; ask for a new approval`, {
      approved_digest: row.digest,
    })
  const now = context.now()
  yield ["UPDATE approvals SET state = 'used', used_at = ?, used_by = ? WHERE id = ?", [now, signatureOf(caller), int(row, 'id')]]
  yield* recordApproval(context, row, { type: 'approval.used', actor: signatureOf(caller) })
  return {
    approval_id: idOf('APPR', int(row, 'id')),
    operation: text(row, 'operation'),
    details: object(row, 'details'),
    digest: text(row, 'digest'),
    note: textOrNull(row, 'note'),
  }
}

/** Lets any run of the task use the approval, whichever attempt asked; without a task, only the agent that asked. */
function assertOwn(caller: Caller, row: Row): void {
  const taskId = intOrNull(row, 'task_id')
  const isOwnTask = taskId === null || (caller.kind === 'run' && caller.taskId === idOf('TASK', taskId))
  const isOwnAgent = (caller.kind === 'run' || caller.kind === 'agent') && caller.id === row.agent_id
  const isAllowed = taskId === null ? isOwnAgent : isOwnTask
  if (!isAllowed)
    throw new PlaneRefusal('conflict', `${idOf('APPR', int(row, 'id'))} belongs to ${ownerOf(row)}, not to ${signatureOf(caller)}`)
}

function ownerOf(row: Row): string {
  const taskId = intOrNull(row, 'task_id')
  return taskId === null ? `agent ${text(row, 'agent_id')}` : `the runs of ${idOf('TASK', taskId)}`
}

function assertUsable(context: PlaneContext, row: Row): void {
  const id = idOf('APPR', int(row, 'id'))
  if (row.state === 'used') throw new PlaneRefusal('conflict', `${id} was used already, by ${text(row, 'used_by')}; ask for a new approval`)
  if (row.state !== 'approved')
    throw new PlaneRefusal('conflict', `${id} is ${text(row, 'state')}, so it permits nothing`, { state: row.state })
  if (isOver(context, row)) throw new PlaneRefusal('conflict', `${id} expired; ask for a new approval`, { state: 'expired' })
}

function approvalOf(row: Row): Approval {
  return {
    approval_id: idOf('APPR', int(row, 'id')),
    task_id: idOrNull('TASK', intOrNull(row, 'task_id')),
    run_id: idOrNull('RUN', intOrNull(row, 'run_id')),
    agent_id: text(row, 'agent_id'),
    role: textOrNull(row, 'role'),
    operation: text(row, 'operation'),
    reasoning: text(row, 'reasoning'),
    estimated_tokens: int(row, 'estimated_tokens'),
    details: object(row, 'details'),
    digest: text(row, 'digest'),
    state: approval.shape.state.parse(row.state),
    note: textOrNull(row, 'note'),
    decided_by: textOrNull(row, 'decided_by'),
    decided_at: timeOrNull(row, 'decided_at'),
    used_at: timeOrNull(row, 'used_at'),
    created_at: time(row, 'created_at'),
    expires_at: time(row, 'expires_at'),
  }
}

/** @throws PlaneRefusal not_found */
function* readApproval(id: string, lock = ''): Command<Row> {
  const row = yield* queryOne(`SELECT * FROM approvals WHERE id = ?${lock}`, [numberOf(id)])
  if (!row) throw new PlaneRefusal('not_found', `the approval ${id} does not exist`)
  return row
}

/** Locks an approval, and before it its task, because all other commands lock the task first. @throws PlaneRefusal not_found */
function* lockApproval({ dialect }: PlaneContext, id: string): Command<Row> {
  const { task_id: taskId } = yield* readApproval(id)
  if (taskId !== null && taskId !== undefined) yield [`SELECT id FROM tasks WHERE id = ?${dialect.forUpdate}`, [taskId]]
  return yield* readApproval(id, dialect.forUpdate)
}
