/** Lists every tool attempt in the journal, for comparison with the receipts. */

import { isObject } from '../../kit/json.ts'
import type { Store } from '../store.ts'
import { isAlive } from './process-owner.ts'
import { argsHashOf, resultHashOf, sandboxOf, toldResultHash } from './receipt-draft.ts'

/**
 * `receiptId` is absent while the act runs (`pending`), after its process died (`unfinished`) and when receipts were off. The hashes are
 * recomputed from the journal.
 */
export type Attempt = {
  readonly runId: string
  readonly callId: string
  readonly conversationId: string
  readonly tool: string
  readonly argsHash: string
  readonly status?: string
  readonly resultHash?: string
  readonly sandbox?: string
  readonly receiptId?: string
  readonly pending: boolean
  readonly unfinished: boolean
}

type Row = { readonly runId: string; readonly conversationId: string; readonly owner: string; readonly type: string; readonly body: string }

/** Yields the attempts of one run or of all; oldest first, those without a result last. */
export function* attempts(store: Store, runId?: string): Generator<Attempt> {
  const open = new Map<string, Attempt>()
  const owed = resultsOwed(store)
  for (const row of rowsOf(store, runId)) {
    const body: unknown = JSON.parse(row.body)
    if (!isObject(body)) continue
    const key = `${row.runId}\n${body.id}`
    if (row.type === 'act') open.set(key, begun(row, body))
    else {
      const before = row.type === 'deny' ? begun(row, body) : open.get(key)
      if (before) yield row.type === 'deny' ? refused(before, body) : done(before, body)
      open.delete(key)
    }
  }
  for (const [key, { pending, ...attempt }] of open)
    yield { ...attempt, pending: pending && owed.has(key), unfinished: !pending && owed.has(key) }
}

/** Returns the acts for which the journal expects a result. Any other act without a result has lost it. */
function resultsOwed(store: Store): Set<string> {
  const rows = store.sql<{ key: string }, []>(`SELECT run_id || char(10) || call_id AS key FROM intents`).all()
  return new Set(rows.map(({ key }) => key))
}

/** Uses two queries: a query for "all, or this one" would scan the whole journal for one run. */
function rowsOf(store: Store, runId: string | undefined): Iterable<Row> {
  const select = `SELECT journal.run_id AS runId, conversation_id AS conversationId, owner, type, body FROM journal JOIN runs USING (run_id)
     WHERE type IN ('act', 'tool.done', 'deny')`
  return runId === undefined
    ? store.sql<Row, []>(`${select} ORDER BY seq`).iterate()
    : store.sql<Row, [string]>(`${select} AND journal.run_id = ? ORDER BY seq`).iterate(runId)
}

function begun({ runId, conversationId, owner }: Row, { id, call }: { [key: string]: unknown }): Attempt {
  const known = isObject(call) ? call : {}
  const argsHash = argsHashOf({ input: known.input, malformed: known.malformed })
  return { runId, callId: String(id), conversationId, tool: String(known.name), argsHash, pending: isAlive(owner), unfinished: false }
}

function done(before: Attempt, { outcome }: { [key: string]: unknown }): Attempt {
  const told = isObject(outcome) ? outcome : {}
  const sandbox = isObject(told.metadata) ? sandboxOf(told.metadata.sandbox) : {}
  return {
    ...before,
    pending: false,
    status: String(told.status),
    resultHash: toldResultHash(told),
    ...sandbox,
    ...receiptOf(told.receipt),
  }
}

function refused(before: Attempt, { by, reason, receipt }: { [key: string]: unknown }): Attempt {
  const resultHash = resultHashOf({ status: 'denied', output: '', error: `${by}: ${reason}` })
  return { ...before, pending: false, status: 'denied', resultHash, ...receiptOf(receipt) }
}

function receiptOf(receipt: unknown): { receiptId?: string } {
  return typeof receipt === 'string' ? { receiptId: receipt } : {}
}
