/** Stores questions to a person about one exact plan, each answered once and used once, and the permanent answers ("always"). */

import type { Seal } from '../receipts/contract.ts'
import type { InternalEvent } from '../runtime/event.ts'
import { gateIdOf } from '../runtime/gate-id.ts'
import type { Clock, RunIdentity } from '../runtime/port.ts'
import type { Store } from './store.ts'

/** `altered`: the row is not as it was written, so it counts for nothing; no row has that state. */
export type ApprovalState = 'open' | 'allowed' | 'denied' | 'used' | 'altered'

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
  /** The row is not as it was written: it allows nothing. */
  readonly altered?: true
}

export type ApprovalResult = { readonly ok: true } | { readonly ok: false; readonly reason: string; readonly altered?: true }

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
  decide(decision: { readonly id: string; readonly allow: boolean; readonly by: string; readonly note?: string }): ApprovalResult
  /** Called directly before the act: succeeds for exactly one caller, before expiry, for exactly this plan. */
  consume(use: { readonly id: string; readonly plan: string }): ApprovalResult
  /** Returns a valid approval of this plan whose run has ended, so that its own run cannot use it any more. */
  standing(plan: { readonly conversationId: string; readonly plan: string }): Approval | undefined
  /** Prevents any later answer or use. Earlier decisions stay, except that an unused approval is denied. */
  close(closing: { readonly id: string; readonly by: string; readonly note?: string }): void
  /** Lets a question about changes be answered again. */
  reopen(id: string): void
  /** Records that the changes were not applied although the approval was used. */
  fail(id: string, why: string): void
  addRule(rule: { readonly tool: string; readonly scope: string; readonly by: string }): AlwaysRule
  /** Rules that count, or also those that were altered. */
  rules(which?: { readonly altered: boolean }): AlwaysRule[]
  hasRule(tool: string, scope: string): boolean
  /** @returns false when there was no such rule. */
  revokeRule(id: number): boolean
}

const columns = `id, run_id AS runId, conversation_id AS conversationId, call_id AS callId, tool, risk, reason, summary, plan, created, expires,
  state, decided_by AS decidedBy, decided_at AS decidedAt, note, id LIKE 'changes:%' AS changes, revision, seal`
const ruleColumns = 'id, tool, scope, added_by AS addedBy, added_at AS addedAt, seal'

type Sealed<Content> = Content & { readonly seal: string | null }
/** `revision` counts the changes of a row. */
type ApprovalRow = Sealed<Approval & { readonly revision: number }>
type RuleRow = Sealed<AlwaysRule>

/** The journal counts the changes of each row: a row with a lower count was replaced by an older version of itself. */
export type ChangeCount = { add(id: string, revision: number): void; last(id: string, since: number): number }

export type ApprovalsOptions = { readonly now: Clock; readonly seal?: Seal; readonly changes?: ChangeCount }

const uncounted: ChangeCount = { add: () => {}, last: () => 0 }

export function createApprovals(store: Store, { now, seal = () => undefined, changes = uncounted }: ApprovalsOptions): Approvals {
  /** Changes an unaltered row and seals it again; the journal counts the change. */
  function change(id: string, step: (row: ApprovalRow, at: number) => Partial<Approval> | string): ApprovalResult {
    return store.write(() => {
      const row = rowOf(store, id)
      if (!row) return { ok: false, reason: `the approval "${id}" does not exist` }
      if (shown(row, seal).state === 'altered' || changes.last(id, row.created) > row.revision)
        return { ok: false, altered: true, reason: alteredText(id) }
      const next = step(row, now())
      if (typeof next === 'string') return { ok: false, reason: next }
      const { state, decidedBy, decidedAt, note } = { ...row, ...next }
      const update = 'UPDATE approvals SET state = ?, decided_by = ?, decided_at = ?, note = ?, revision = revision + 1 WHERE id = ?'
      store.run(update, state, decidedBy, decidedAt, note, id)
      sealRow(store, id, seal)
      changes.add(id, row.revision + 1)
      return { ok: true }
    })
  }

  /** A rule that was revoked and put back counts as altered too. */
  function shownRule({ seal: found, ...rule }: RuleRow): AlwaysRule {
    const isRevoked = changes.last(`rule ${rule.id}`, rule.addedAt) > 0
    return found === (seal(ruleText(rule)) ?? null) && !isRevoked ? rule : { ...rule, altered: true }
  }

  const removeRule = (id: number) => store.run('DELETE FROM always_rules WHERE id = ?', id).changes === 1

  return {
    create: ({ run, gate: { call, judgement, changes: about }, expires }) => {
      const id = gateIdOf(run.runId, call.id, about && 'changes')
      const insert = `INSERT INTO approvals(id, run_id, conversation_id, call_id, tool, risk, reason, summary, plan, created, expires,
        state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'open')`
      const { risk, reason, summary, plan } = judgement
      store.write(() => {
        store.run(insert, id, run.runId, run.conversationId, call.id, call.name, risk, reason, summary, plan, now(), expires)
        sealRow(store, id, seal)
      })
      return id
    },
    get: (id) => {
      const row = rowOf(store, id)
      return row && shown(row, seal)
    },
    list: ({ state, limit = 100, ownedBy } = {}) =>
      store
        .sql<ApprovalRow, [string | null, number, number, string | null]>(
          `SELECT ${columns} FROM approvals WHERE (?1 IS NULL OR state = ?1) AND NOT (?1 IS 'open' AND NOT (${alive('?2')}))
           AND (?4 IS NULL OR conversation_id IN (SELECT conversation_id FROM token_conversations WHERE token_id = ?4))
           ORDER BY created DESC, id LIMIT ?3`,
        )
        .all(state ?? null, now(), limit, ownedBy ?? null)
        .map((row) => shown(row, seal)),
    decide: ({ id, allow, by, note }) =>
      change(id, (row, at) =>
        row.state === 'open' && isAlive(row, at)
          ? { state: allow ? 'allowed' : 'denied', decidedBy: by, decidedAt: at, note: note ?? null }
          : whyNotDecided(row),
      ),
    consume: ({ id, plan }) =>
      change(id, (row, at) =>
        row.plan === plan && row.state === 'allowed' && isAlive(row, at) ? { state: 'used' } : whyNotUsable(row, { id, plan }),
      ),
    standing: ({ conversationId, plan }) =>
      store
        .sql<ApprovalRow, [string, string, number]>(
          `SELECT ${columns} FROM approvals WHERE state = 'allowed' AND conversation_id = ?1 AND plan = ?2 AND ${alive('?3')}
           AND EXISTS (SELECT 1 FROM runs WHERE runs.run_id = approvals.run_id AND ended IS NOT NULL) ORDER BY created DESC`,
        )
        .all(conversationId, plan, now())
        .map((row) => shown(row, seal))
        .find(({ state }) => state === 'allowed'),
    close: ({ id, by, note }) =>
      void change(id, ({ state }, at) =>
        state === 'open' || state === 'allowed' ? { state: 'denied', decidedBy: by, decidedAt: at, note: note ?? null } : 'it is closed',
      ),
    reopen: (id) => void change(id, () => ({ state: 'open', decidedBy: null, decidedAt: null })),
    fail: (id, why) => void change(id, () => ({ state: 'denied', note: why })),
    addRule: ({ tool, scope, by }) =>
      store.write(() => {
        const known = findRule(store, tool, scope)
        if (known && !shownRule(known).altered) return shownRule(known)
        if (known) removeRule(known.id)
        store.run('INSERT INTO always_rules(tool, scope, added_by, added_at) VALUES (?, ?, ?, ?)', tool, scope, by, now())
        const rule = findRule(store, tool, scope)
        if (!rule) throw new Error(`rule for ${tool} ${scope} vanished while it was being added`)
        sealRule(store, rule, seal)
        return shownRule({ ...rule, seal: seal(ruleText(rule)) ?? null })
      }),
    rules: ({ altered } = { altered: false }) =>
      store
        .sql<RuleRow, []>(`SELECT ${ruleColumns} FROM always_rules ORDER BY id`)
        .all()
        .map(shownRule)
        .filter((rule) => altered || !rule.altered),
    hasRule(tool, scope) {
      const rule = findRule(store, tool, scope)
      return rule !== undefined && !shownRule(rule).altered
    },
    revokeRule: (id) =>
      store.write(() => {
        const isRemoved = removeRule(id)
        if (isRemoved) changes.add(`rule ${id}`, 1)
        return isRemoved
      }),
  }
}

export function alteredText(id: string): string {
  return `approval "${id}" is not as BraidClaw wrote it: somebody edited its row, or put an older one in its place. It counts for nothing; ask the agent again`
}

function rowOf(store: Store, id: string): ApprovalRow | undefined {
  return store.sql<ApprovalRow, [string]>(`SELECT ${columns} FROM approvals WHERE id = ?`).get(id) ?? undefined
}

function shown({ seal: found, revision, ...row }: ApprovalRow, seal: Seal): Approval {
  return found === (seal(textOf({ ...row, revision })) ?? null) ? row : { ...row, state: 'altered' }
}

function textOf(row: Omit<ApprovalRow, 'seal'>): string {
  const { id, runId, conversationId, callId, tool, risk, reason, summary, plan, created, expires } = row
  const question = [id, runId, conversationId, callId, tool, risk, reason, summary, plan, created, expires]
  return `approval:${JSON.stringify([...question, row.state, row.decidedBy, row.decidedAt, row.note, row.revision])}`
}

function sealRow(store: Store, id: string, seal: Seal): void {
  const row = rowOf(store, id)
  if (row) store.run('UPDATE approvals SET seal = ? WHERE id = ?', seal(textOf(row)) ?? null, id)
}

function ruleText({ id, tool, scope, addedBy, addedAt }: AlwaysRule): string {
  return `always:${JSON.stringify([id, tool, scope, addedBy, addedAt])}`
}

function sealRule(store: Store, rule: AlwaysRule, seal: Seal): void {
  store.run('UPDATE always_rules SET seal = ? WHERE id = ?', seal(ruleText(rule)) ?? null, rule.id)
}

/** Seals what an older version left; call it once, when the schema is brought up to date. */
export function sealUnsealed(store: Store, seal: Seal): void {
  for (const { id } of store.sql<{ id: string }, []>('SELECT id FROM approvals').all()) sealRow(store, id, seal)
  for (const rule of store.sql<RuleRow, []>(`SELECT ${ruleColumns} FROM always_rules`).all()) sealRule(store, rule, seal)
}

/** Ten minutes; a year for a question of a procedure: no tool has a dot in its name. */
const [longestLifeMs, procedureMs] = [600_000, 31_622_400_000]

/**
 * SQL condition for a valid approval. A clock that was set back must not extend a life, so an approval counts as expired before its
 * creation time. An edited row must not either: no life is longer than it may be.
 */
function alive(now: string): string {
  return `created <= ${now} AND expires > ${now} AND expires <= created + iif(tool LIKE 'sop.%', ${procedureMs}, ${longestLifeMs})`
}

function isAlive({ created, expires, tool }: Approval, now: number): boolean {
  return created <= now && expires > now && expires <= created + (tool.startsWith('sop.') ? procedureMs : longestLifeMs)
}

function findRule(store: Store, tool: string, scope: string): RuleRow | undefined {
  const found = store.sql<RuleRow, [string, string]>(`SELECT ${ruleColumns} FROM always_rules WHERE tool = ? AND scope = ?`)
  return found.get(tool, scope) ?? undefined
}

function whyNotDecided(approval: Approval): string {
  const { id } = approval
  if (approval.state === 'open') return `approval "${id}" expired at ${new Date(approval.expires).toISOString()}; ask the agent again`
  return `approval "${id}" was already ${approval.state} by ${approval.decidedBy ?? 'nobody'}`
}

function whyNotUsable(approval: Approval, { id, plan }: { readonly id: string; readonly plan: string }): string {
  if (approval.plan !== plan) return `approval "${id}" was given for another plan (${approval.plan}, not ${plan})`
  if (approval.state !== 'allowed') return `approval "${id}" is ${approval.state}, and only an allowed one can be used, once`
  return `approval "${id}" expired at ${new Date(approval.expires).toISOString()}`
}
