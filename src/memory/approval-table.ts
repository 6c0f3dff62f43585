/** Stores questions to a person about one exact plan, each answered once and used once, and the permanent answers ("always"). */

import type { InternalEvent } from '../runtime/event.ts'
import { gateIdOf } from '../runtime/gate-id.ts'
import type { Clock, RunIdentity } from '../runtime/port.ts'
import type { Store } from './store.ts'

export type ApprovalState = 'open' | 'allowed' | 'denied' | 'used'

/**
 * Times in milliseconds since 1970. `plan` is the hash of the call to execute, `summary` the line that the person read. `changes` is 1 when
 * the call has run and the question is about what it changed: `plan` is then the digest of the change set.
 */
export type Approval = {
  readonly id: string
  readonly runId: string
  readonly conversationId: string
  readonly callId: string
  readonly tool: string
  readonly risk: string
  readonly reason: string
  readonly summary: string
  readonly plan: string
  readonly created: number
  readonly expires: number
  readonly state: ApprovalState
  readonly decidedBy: string | null
  readonly decidedAt: number | null
  readonly note: string | null
  readonly changes: 0 | 1
}

/** `scope` is what the rule allows: a resolved executable and its sub-command, never a wrapper or a shell. */
export type AlwaysRule = {
  readonly id: number
  readonly tool: string
  readonly scope: string
  readonly addedBy: string
  readonly addedAt: number
}

export type Answer = { readonly ok: true } | { readonly ok: false; readonly reason: string }

/** `ownedBy`: only questions of conversations that the token of this id began. */
export type ApprovalFilter = { readonly state?: ApprovalState; readonly limit?: number; readonly ownedBy?: string | undefined }

export type Approvals = {
  /** @returns the approval's id, "runId/callId". */
  create(question: {
    readonly run: RunIdentity
    readonly gate: Extract<InternalEvent, { type: 'gate.open' }>
    readonly expires: number
  }): string
  get(id: string): Approval | undefined
  /** Newest first; all states without a filter. Does not list expired approvals as open. */
  list(filter?: ApprovalFilter): Approval[]
  decide(decision: { readonly id: string; readonly allow: boolean; readonly by: string; readonly note?: string }): Answer
  /** Called directly before the act: succeeds for exactly one caller, before expiry, for exactly this plan. */
  consume(use: { readonly id: string; readonly plan: string }): Answer
  /** Returns a valid approval of this plan whose run has ended, so that its own run cannot use it any more. */
  standing(plan: { readonly conversationId: string; readonly plan: string }): Approval | undefined
  /** Prevents any later answer or use. Earlier decisions stay, except that an unused approval is denied. */
  close(closing: { readonly id: string; readonly by: string; readonly note?: string }): void
  addRule(rule: { readonly tool: string; readonly scope: string; readonly by: string }): AlwaysRule
  rules(): AlwaysRule[]
  hasRule(tool: string, scope: string): boolean
  /** @returns false when there was no such rule. */
  revokeRule(id: number): boolean
}

const columns = `id, run_id AS runId, conversation_id AS conversationId, call_id AS callId, tool, risk, reason, summary, plan, created, expires,
  state, decided_by AS decidedBy, decided_at AS decidedAt, note, id LIKE 'changes:%' AS changes`
const ruleColumns = 'id, tool, scope, added_by AS addedBy, added_at AS addedAt'

export function createApprovals(store: Store, now: Clock): Approvals {
  const create: Approvals['create'] = ({ run, gate: { call, judgement, changes }, expires }) => {
    const id = gateIdOf(run.runId, call.id, changes && 'changes')
    const insert = store.sql<never, (string | number)[]>(
      `INSERT INTO approvals(id, run_id, conversation_id, call_id, tool, risk, reason, summary, plan, created, expires, state)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'open')`,
    )
    const { risk, reason, summary, plan } = judgement
    store.write(() => insert.run(id, run.runId, run.conversationId, call.id, call.name, risk, reason, summary, plan, now(), expires))
    return id
  }

  const get: Approvals['get'] = (id) => store.sql<Approval, [string]>(`SELECT ${columns} FROM approvals WHERE id = ?`).get(id) ?? undefined

  const list: Approvals['list'] = ({ state, limit = 100, ownedBy } = {}) =>
    store
      .sql<Approval, [string | null, number, number, string | null]>(
        `SELECT ${columns} FROM approvals WHERE (?1 IS NULL OR state = ?1) AND NOT (?1 IS 'open' AND NOT (${alive('?2')}))
         AND (?4 IS NULL OR conversation_id IN (SELECT conversation_id FROM token_conversations WHERE token_id = ?4))
         ORDER BY created DESC, id LIMIT ?3`,
      )
      .all(state ?? null, now(), limit, ownedBy ?? null)

  const decide: Approvals['decide'] = ({ id, allow, by, note }) => {
    const update = store.sql<never, [string, string, number, string | null, string]>(
      `UPDATE approvals SET state = ?1, decided_by = ?2, decided_at = ?3, note = ?4 WHERE id = ?5 AND state = 'open' AND ${alive('?3')}`,
    )
    const { changes } = store.write(() => update.run(allow ? 'allowed' : 'denied', by, now(), note ?? null, id))
    return changes === 1 ? { ok: true } : { ok: false, reason: whyNotDecided(get(id), id) }
  }

  const consume: Approvals['consume'] = ({ id, plan }) => {
    const update = store.sql<never, [string, string, number]>(
      `UPDATE approvals SET state = 'used' WHERE id = ?1 AND plan = ?2 AND state = 'allowed' AND ${alive('?3')}`,
    )
    const { changes } = store.write(() => update.run(id, plan, now()))
    return changes === 1 ? { ok: true } : { ok: false, reason: whyNotUsable(get(id), { id, plan }) }
  }

  const standing: Approvals['standing'] = ({ conversationId, plan }) =>
    store
      .sql<Approval, [string, string, number]>(
        `SELECT ${columns} FROM approvals WHERE state = 'allowed' AND conversation_id = ?1 AND plan = ?2 AND ${alive('?3')}
         AND EXISTS (SELECT 1 FROM runs WHERE runs.run_id = approvals.run_id AND ended IS NOT NULL) ORDER BY created DESC LIMIT 1`,
      )
      .get(conversationId, plan, now()) ?? undefined

  const close: Approvals['close'] = ({ id, by, note }) => {
    const update = store.sql<never, [string, number, string | null, string]>(
      `UPDATE approvals SET state = 'denied', decided_by = ?1, decided_at = ?2, note = ?3 WHERE id = ?4 AND state IN ('open', 'allowed')`,
    )
    store.write(() => update.run(by, now(), note ?? null, id))
  }

  const addRule: Approvals['addRule'] = ({ tool, scope, by }) =>
    store.write(() => {
      store
        .sql<never, [string, string, string, number]>(
          'INSERT OR IGNORE INTO always_rules(tool, scope, added_by, added_at) VALUES (?, ?, ?, ?)',
        )
        .run(tool, scope, by, now())
      const rule = findRule(store, tool, scope)
      if (!rule) throw new Error(`rule for ${tool} ${scope} vanished while it was being added`)
      return rule
    })

  const rules: Approvals['rules'] = () => store.sql<AlwaysRule, []>(`SELECT ${ruleColumns} FROM always_rules ORDER BY id`).all()

  const revokeRule: Approvals['revokeRule'] = (id) =>
    store.write(() => store.sql<never, [number]>('DELETE FROM always_rules WHERE id = ?').run(id)).changes === 1

  return {
    create,
    get,
    list,
    decide,
    consume,
    standing,
    close,
    addRule,
    rules,
    hasRule: (tool, scope) => findRule(store, tool, scope) !== undefined,
    revokeRule,
  }
}

const longestLifeMs = 600_000

/**
 * SQL condition for a valid approval. A clock that was set back must not extend a life, so an approval counts as expired before its
 * creation time. An edited row must not either: no life is longer than ten minutes.
 */
function alive(now: string): string {
  return `created <= ${now} AND expires > ${now} AND expires <= created + ${longestLifeMs}`
}

function findRule(store: Store, tool: string, scope: string): AlwaysRule | undefined {
  const found = store.sql<AlwaysRule, [string, string]>(`SELECT ${ruleColumns} FROM always_rules WHERE tool = ? AND scope = ?`)
  return found.get(tool, scope) ?? undefined
}

function whyNotDecided(approval: Approval | undefined, id: string): string {
  if (!approval) return `there is no approval "${id}"`
  if (approval.state === 'open') return `approval "${id}" expired at ${new Date(approval.expires).toISOString()}; ask the agent again`
  return `approval "${id}" was already ${approval.state} by ${approval.decidedBy ?? 'nobody'}`
}

function whyNotUsable(approval: Approval | undefined, { id, plan }: { readonly id: string; readonly plan: string }): string {
  if (!approval) return `there is no approval "${id}"`
  if (approval.plan !== plan) return `approval "${id}" was given for another plan (${approval.plan}, not ${plan})`
  if (approval.state !== 'allowed') return `approval "${id}" is ${approval.state}, and only an allowed one can be used, once`
  return `approval "${id}" expired at ${new Date(approval.expires).toISOString()}`
}
