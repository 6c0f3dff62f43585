/** Lists every tool attempt in the journal, for comparison with the receipts. */

import { isObject } from '../../kit/json.ts'
import type { JournalledAttempt } from '../../receipts/contract.ts'
import { dropOutcome } from '../../runtime/outcome.ts'
import type { Store } from '../store.ts'
import { isAlive } from './process-owner.ts'
import { argsHashOf, recordedResultHash, resultHashOf, seenIn } from './receipt-draft.ts'

type AttemptRow = {
  readonly runId: string
  readonly conversationId: string
  readonly owner: string
  readonly type: string
  readonly body: string
}

/** `changed`: the digest of what the call changed on its view; `applied`: of what of that may enter the workspace. */
type OpenAttempt = {
  readonly attempt: JournalledAttempt
  readonly owner: string
  readonly changed?: string
  readonly applied?: string
  readonly contradiction?: string
}

/**
 * Yields the attempts of one run or of all; oldest first, those without a result last. The hashes are computed from the journal; a receipt
 * is absent while the act runs, after its process died and when receipts were off.
 */
export function* attempts(store: Store, runId?: string): Generator<JournalledAttempt> {
  const open = new Map<string, OpenAttempt>()
  const owed = resultsOwed(store)
  for (const row of rowsOf(store, runId)) {
    const body: unknown = JSON.parse(row.body)
    if (!isObject(body)) continue
    const key = `${row.runId}\n${body.id}`
    const before = open.get(key)
    if (row.type === 'act') open.set(key, { attempt: begun(row, body), owner: row.owner })
    else if (row.type === 'tool.changed' || row.type === 'apply') {
      if (before) open.set(key, reviewed(before, row.type, body))
    } else {
      if (row.type === 'deny') yield refused(begun(row, body), body)
      else if (before) yield settled(before, row.type === 'drop' ? dropped(before, body) : done(before.attempt, body), row.type)
      open.delete(key)
    }
  }
  for (const [key, { attempt, owner }] of open) {
    const lives = isAlive(owner)
    yield { ...attempt, pending: lives && owed.has(key), unfinished: !lives && owed.has(key) }
  }
}

function reviewed(open: OpenAttempt, type: 'tool.changed' | 'apply', { review, part }: { [key: string]: unknown }): OpenAttempt {
  const digest = isObject(review) ? String(review.digest) : ''
  if (type === 'tool.changed') return { ...open, changed: digest }
  const applied = typeof part === 'string' ? part : digest
  return open.changed === digest ? { ...open, applied } : { ...open, contradiction: 'it applied other changes than it made' }
}

/** Checks that the result agrees with the journalled changes: applied with that digest, or not applied. */
function settled({ changed, applied, contradiction }: OpenAttempt, attempt: JournalledAttempt, type: string): JournalledAttempt {
  const { changes } = attempt
  const isDigest = changes?.length === 64
  const wrong =
    contradiction ??
    (isDigest && changes !== applied ? 'its result names changes that were not applied' : undefined) ??
    (changed !== undefined && applied === undefined && type !== 'drop'
      ? 'it changed something, which was neither applied nor dropped'
      : undefined)
  return wrong === undefined ? attempt : { ...attempt, contradiction: wrong }
}

/** Returns the acts for which the journal expects a result. Any other act without a result has lost it. */
function resultsOwed(store: Store): Set<string> {
  const rows = store.sql<{ key: string }, []>(`SELECT run_id || char(10) || call_id AS key FROM intents`).all()
  return new Set(rows.map(({ key }) => key))
}

/** Uses two queries: a query for "all, or this one" would scan the whole journal for one run. */
function rowsOf(store: Store, runId: string | undefined): Iterable<AttemptRow> {
  const select = `SELECT journal.run_id AS runId, conversation_id AS conversationId, owner, type, body FROM journal JOIN runs USING (run_id)
     WHERE type IN ('act', 'tool.changed', 'apply', 'tool.done', 'deny', 'drop')`
  return runId === undefined
    ? store.sql<AttemptRow, []>(`${select} ORDER BY seq`).iterate()
    : store.sql<AttemptRow, [string]>(`${select} AND journal.run_id = ? ORDER BY seq`).iterate(runId)
}

function begun({ runId, conversationId }: AttemptRow, { id, call }: { [key: string]: unknown }): JournalledAttempt {
  const known = isObject(call) ? call : {}
  const argsHash = argsHashOf({ input: known.input, malformed: known.malformed })
  return { runId, callId: String(id), conversationId, tool: String(known.name), argsHash, pending: false, unfinished: false }
}

function done(before: JournalledAttempt, { outcome }: { [key: string]: unknown }): JournalledAttempt {
  const recorded = isObject(outcome) ? outcome : {}
  return {
    ...before,
    status: String(recorded.status),
    resultHash: recordedResultHash(recorded),
    ...seenIn(isObject(recorded.metadata) ? recorded.metadata : {}),
    ...receiptOf(recorded.receipt),
  }
}

/** `result` exists only after a crash: the recovery writes it. */
function dropped({ attempt, changed }: OpenAttempt, body: { [key: string]: unknown }): JournalledAttempt {
  const { by, reason, outcome, review, receipt, result } = body
  const ran = isObject(outcome) ? outcome : {}
  const recorded = isObject(result) ? result : dropOutcome({ by: String(by), reason: String(reason), outcome: ran })
  const other = isObject(review) && review.digest === changed ? {} : { contradiction: 'it dropped other changes than it made' }
  return { ...done(attempt, { outcome: { ...recorded, receipt } }), ...other }
}

function refused(before: JournalledAttempt, { by, reason, receipt }: { [key: string]: unknown }): JournalledAttempt {
  const resultHash = resultHashOf({ status: 'denied', output: '', error: `${by}: ${reason}` })
  return { ...before, status: 'denied', resultHash, ...receiptOf(receipt) }
}

function receiptOf(receipt: unknown): { receiptId?: string } {
  return typeof receipt === 'string' ? { receiptId: receipt } : {}
}
