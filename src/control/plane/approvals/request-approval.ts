/** Asks an operator: the question is kept, and the task that asks waits without a lease, so it costs nothing meanwhile. */

import { digest } from '../../../kit/digest.ts'
import { type Caller, signatureOf } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { idOf, nextId, numberOf, type PlaneContext } from '../context.ts'
import { recordEvent } from '../events/record-event.ts'
import { amount, first } from '../row.ts'
import { blockTask } from '../tasks/end-task.ts'

export type Question = {
  readonly caller: Caller
  readonly agentId: string
  readonly role: string | null
  /** With `runId` the task waits for the answer; without, it is only named. */
  readonly taskId: number | null
  readonly runId: number | null
  readonly operation: string
  readonly reasoning: string
  readonly estimatedTokens: number
  readonly details: Readonly<Record<string, unknown>>
}

/** What an approval permits, and nothing else: a use must repeat it. @throws PlaneRefusal bad_request for text with half of a character */
export function operationDigest(operation: string, details: Readonly<Record<string, unknown>>): string {
  try {
    return digest({ operation, details })
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new PlaneRefusal('bad_request', `"details" of an approval request must be plain JSON: ${why}`)
  }
}

/** @returns the number of the approval */
export function* requestApproval(context: PlaneContext, question: Question): Command<number> {
  const { caller, agentId, role, taskId, runId, operation } = question
  const id = yield* insertApproval(context, question)
  if (taskId !== null && runId !== null) yield* blockTask(context, taskId, 'awaiting_approval', null, { actor: signatureOf(caller) })
  const data = { approval_id: idOf('APPR', id), operation }
  yield* recordEvent(context, { type: 'approval.requested', actor: signatureOf(caller), taskId, runId, agentId, role, data })
  return id
}

function* insertApproval(context: PlaneContext, question: Question): Command<number> {
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
  yield [`INSERT INTO approvals (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`, Object.values(columns)]
  return id
}

/** The same question of the same run: its answer was lost on the way, and the run asks again. */
export function* sameQuestion({
  runId,
  operation,
  details,
}: Pick<Question, 'operation' | 'details'> & { readonly runId: string }): Command<Row | undefined> {
  return yield* first('SELECT * FROM approvals WHERE run_id = ? AND digest = ? ORDER BY id DESC LIMIT 1', [
    numberOf(runId),
    operationDigest(operation, details),
  ])
}

export type Asker = { readonly agentId: string; readonly isRun: boolean; readonly isKnown: boolean }

/**
 * How many questions wait for an operator that count for this asker, or all of them; counted no further than `most`. What others ask in the name
 * of an agent must not hold its runs up, and names that nobody added count as one.
 */
export function* openQuestions({ asker, most }: { readonly asker?: Asker; readonly most: number }): Command<number> {
  const rows = `SELECT 1 FROM approvals WHERE state = 'pending'${asker === undefined ? '' : conditionOf(asker)} LIMIT ?`
  const params = asker?.isKnown ? [asker.agentId, most] : [most]
  return yield* amount(`SELECT COUNT(*) AS value FROM (${rows}) AS counted`, params)
}

function conditionOf({ isRun, isKnown }: Asker): string {
  const ofAgent = isKnown ? 'agent_id = ?' : 'agent_id NOT IN (SELECT id FROM agents)'
  return ` AND ${ofAgent} AND run_id IS ${isRun ? 'NOT NULL' : 'NULL'}`
}
