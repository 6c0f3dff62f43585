/** Lists the questions of a home and answers them: for a turn that waits, or for changes that no turn waits for any more. */

import { relative } from 'node:path'
import { isObject, parseJson } from '../../kit/json.ts'
import { didYouMean, quote } from '../../kit/text.ts'
import type { AlwaysRule, Approval } from '../../memory/approval-table.ts'
import { isAlive } from '../../memory/journal/process-owner.ts'
import type { Memory } from '../../memory/memory.ts'
import type { RecordWriter } from '../../memory/record-writer.ts'
import { createPendingChanges } from '../../memory/recovery/pending-changes.ts'
import type { ChangeSet } from '../../runtime/changes.ts'
import type { Proposal } from '../../runtime/event.ts'
import { changeRuleTool, parseChangeRule, tellChangeRule } from '../../security/changes/standing-changes.ts'
import { judgePath } from '../../security/targets/path.ts'
import type { Applied, SetSummary } from '../../workspace/changes/contract.ts'
import type { ChangeStore } from '../../workspace/changes/store.ts'
import { openWorkspace } from '../../workspace/workspace.ts'
import type { Conversation } from '../api.ts'
import { changeSetOf } from '../changes/kept-changes.ts'
import { patchText } from '../changes/patch-text.ts'
import type { ApprovalDecision, DecidedApproval, HostRecords } from '../contract/records-api.ts'
import { FailureError } from '../failure.ts'
import { policyOf } from '../setup/effective-policy.ts'
import { realFolder } from '../setup/workspace-folder.ts'
import { changesOfFileCall } from '../toolset/file-call-changes.ts'
import { inRecordWords } from './integrity/create-record.ts'
import { openKeptChanges, settleChanges } from './integrity/open-kept-changes.ts'
import { limited, type RecordsBase } from './records-base.ts'

export function approvalRecords(base: RecordsBase): HostRecords['approvals'] {
  const { memory } = base
  const { approvals } = memory
  return {
    list: ({ all = false, limit, ownedBy } = {}) =>
      approvals.list({ limit: limited(limit, 100), ownedBy, ...(all ? {} : { state: 'open' as const }) }),
    async show(id) {
      const { set, ...approval } = await withChanges(base, existing(base, id))
      return { ...approval, patch: set && patchText(set) }
    },
    decide: (id, decision) => decide(base, id, decision),
    rules: () => approvals.rules({ altered: true }).map(withWords),
    revokeRule(id) {
      const rule = approvals.rules({ altered: true }).find((each) => each.id === id)
      if (!approvals.revokeRule(id) || !rule)
        throw new FailureError('error', `the rule ${id} does not exist; see: braidclaw approvals rules list`)
      return withWords(rule)
    },
  }
}

/** RUN/CALL names the question about the changes of that call when it is the one that is open. @throws FailureError `error` */
export function existing({ memory: { approvals } }: Pick<RecordsBase, 'memory'>, id: string): Approval {
  const [found, aboutChanges] = [approvals.get(id), approvals.get(`changes:${id}`)]
  if (aboutChanges && (!found || (found.state !== 'open' && aboutChanges.state === 'open'))) return aboutChanges
  if (found) return found
  const near = didYouMean(
    id,
    approvals.list().map((each) => each.id),
  )
  throw new FailureError('error', `the approval ${quote(id)} does not exist${near}; see: braidclaw approvals list`)
}

/**
 * Returns the question with what a yes does to files, unless it does nothing to them or the changes are no longer kept. Its reason is that
 * of the latest judgement: a yes whose changes meant something else by then is asked for again.
 */
export async function withChanges(
  { setup, memory }: ApprovalContext,
  approval: Approval,
): Promise<Approval & { readonly set?: ChangeSet }> {
  if (approval.changes === 0) {
    const set = changesOfWaitingCall({ setup, memory }, approval)
    return { ...approval, ...(set && { set }) }
  }
  const store = await openKeptChanges(setup, async (use) => use(memory))
  const set = pendingSetOf(store, approval)
  const shown = set && store.show(set.id)
  return shown ? { ...approval, reason: shown.review?.reason ?? approval.reason, set: changeSetOf(shown) } : approval
}

type ApprovalContext = Pick<RecordsBase, 'setup' | 'memory'>

/** Compares what the call of a file tool would write with the workspace as it is now, under the policy of now. */
function changesOfWaitingCall({ setup, memory }: ApprovalContext, approval: Approval): ChangeSet | undefined {
  const { runId, conversationId, callId, plan, state } = approval
  const proposed = memory.journal.events(runId).flatMap(({ body }) => (isObject(body) && 'proposals' in body ? body.proposals : []))
  const found = (proposed as Proposal[]).find(({ call, judgement }) => call.id === callId && judgement.plan === plan)
  const [target = ''] = found?.judgement.writes ?? []
  const { config, paths, context } = setup
  // A conversation that continues in another folder keeps the name of its first one.
  const folders = [memory.conversations.folderOf(conversationId), realFolder(config.workspaceDir)]
  const root = folders.find((folder) => folder !== undefined && target.startsWith(`${folder}/`))
  if (!found || !root || (state !== 'open' && state !== 'allowed')) return undefined
  const policy = policyOf({ ...config, workspaceDir: root }, paths, context.env)
  const files = openWorkspace({ root, check: (path, access) => judgePath({ path, access, cwd: root, policy }) })
  return changesOfFileCall({ ...found.call, input: { ...found.call.input, path: relative(root, target) } }, files)
}

/** Refuses a late answer, a second answer and an answer to an unknown question, with the reason. */
async function decide(base: RecordsBase, ref: string, decision: ApprovalDecision): Promise<DecidedApproval> {
  const { id } = existing(base, ref)
  const { setup, live } = base
  const asking = live?.asking(id)
  const { note } = decision
  const clean = { ...decision, note: note && setup.redactor.text(note) }
  if (!asking && (decision.files || decision.always))
    throw new FailureError('usage', `no turn of this process waits for ${quote(id)}; it can only be answered as a whole, and once`)
  const decided = asking ? await answerTurn(base, asking, { ...clean, id }) : await answerRecord(base, { ...clean, id })
  setup.log('info', decision.allow ? 'tool approved' : 'tool denied', { approval: id, by: decision.by })
  live?.written()
  return decided
}

type ApprovalAnswer = ApprovalDecision & { readonly id: string }

/** Answers a turn that waits in this process. */
async function answerTurn(base: RecordsBase, asking: Conversation, answer: ApprovalAnswer): Promise<DecidedApproval> {
  const { id, allow, by, note, files, always } = answer
  const question = asking.gate(id)
  const part = files && (await partOf(asking, id, files))
  const rejected = await asking.approve(id, { allow, by, note, part })
  const approval = existing(base, id)
  if (rejected !== undefined) throw new FailureError('error', tooLate(approval, rejected))
  const standing = always && allow && question ? asking.allowAlways(question) : undefined
  return { ...approval, always: standing }
}

function tooLate({ id, state, decidedBy }: Approval, rule: string): string {
  const why = state === 'open' ? `was rejected by ${rule}` : `was already ${state} by ${decidedBy ?? 'nobody'}`
  return `approval "${id}" ${why}; see: braidclaw approvals list`
}

async function partOf(asking: Conversation, id: string, only: readonly string[]): Promise<string> {
  const set = await asking.changesOf(id)
  const part = await set?.revise?.({ only })
  if (part?.ok) return part.part
  throw new FailureError('usage', part?.message ?? `${quote(id)} does not ask about several files; answer it without naming files`)
}

/** Writes the answer when no turn of this host waits for it; a process elsewhere that waits reads it. */
async function answerRecord(base: RecordsBase, answer: ApprovalAnswer): Promise<DecidedApproval> {
  const { memory, setup, record } = base
  const { id, allow, by, note } = answer
  // A process that died after the yes, and before anything was applied, left the question as if it were answered.
  if (memory.pending.interrupted().length > 0) await settleChanges(setup, record)
  if (allow && existing(base, id).changes === 1) inRecordWords(record.proveReceipts)
  const approval = record.transaction(() => {
    const result = allow && isUnused(base, existing(base, id)) ? undefined : memory.approvals.decide({ id, allow, by, note })
    if (result?.ok === false)
      throw new FailureError(result.altered ? 'integrity' : 'error', `${result.reason}; see: braidclaw approvals list`)
    const decided = existing(base, id)
    if (!isHeard(base, decided)) tellClosed(base, decided, answer)
    return decided
  })
  const awaited = approval.changes === 1 ? isAwaited(memory, approval) : 'yes'
  if (awaited === 'crashed') await settleChanges(setup, record)
  const applied = awaited === 'yes' ? undefined : await settleLate(base, approval, answer)
  return { ...approval, applied }
}

/** Returns whether changes that no process waits for were approved by one that died before it applied them: the approval still holds. */
function isUnused({ memory }: RecordsBase, approval: Approval): boolean {
  return approval.state === 'allowed' && approval.changes === 1 && isAwaited(memory, approval) === 'no'
}

/** Returns whether the run of the question is under way somewhere: it then journals the answer itself. */
function isHeard({ memory: { journal } }: RecordsBase, { runId }: Approval): boolean {
  const run = journal.run(runId)
  return run !== undefined && run.ended === null && isAlive(run.owner)
}

function tellClosed({ memory }: RecordsBase, { id, runId, conversationId }: Approval, { allow, by, note }: ApprovalAnswer): void {
  memory.note('approval.decided', { id, runId, conversationId, allow, by, note })
}

/** Applies or drops the changes here. */
async function settleLate(
  { setup, memory, record }: RecordsBase,
  approval: Approval,
  { allow, by }: ApprovalAnswer,
): Promise<{ readonly count: number } | undefined> {
  const store = await openKeptChanges(setup, async (use) => use(memory))
  if (allow) {
    const applied = await applyLate({ memory, record, store, approval, by })
    if (!applied.ok) throw new FailureError('error', `allowed, but not applied: ${applied.message}`)
    return applied
  }
  const set = pendingSetOf(store, approval)
  if (!set) return undefined
  await store.drop(set.id)
  const { runId: run, callId: call, conversationId, plan: digest } = approval
  record.transaction(() => memory.note('changes.drop', { conversationId, input: { run, call, digest, by } }))
  return undefined
}

/**
 * The scope is the JSON of an executable and its sub-command, or of a command and the paths it may change; other scopes are shown
 * unchanged.
 */
function withWords(rule: AlwaysRule): AlwaysRule & { readonly allows: string } {
  return { ...rule, allows: wordsOf(rule) }
}

function wordsOf({ tool, scope }: AlwaysRule): string {
  const changes = tool === changeRuleTool ? parseChangeRule(scope) : undefined
  if (changes) return tellChangeRule(changes)
  const words = parseJson(scope)
  return Array.isArray(words) ? words.join(' ') : scope
}

type LateDecision = {
  readonly record: RecordWriter
  readonly memory: Memory
  readonly store: Pick<ChangeStore, 'list' | 'apply'>
  readonly approval: Approval
  /** The person who approved it. */
  readonly by: string
}

/** `yes`: the process that asked still waits for the answer and applies the changes itself. `crashed`: it died while it waited. */
function isAwaited({ journal }: Memory, { runId, callId }: Approval): 'yes' | 'no' | 'crashed' {
  if (journal.openIntent(runId, callId) === undefined) return 'no'
  return isAlive(journal.run(runId)?.owner ?? '') ? 'yes' : 'crashed'
}

/** @returns undefined when the changes are no longer kept */
function pendingSetOf(store: Pick<ChangeStore, 'list'>, { runId, callId }: Pick<Approval, 'runId' | 'callId'>): SetSummary | undefined {
  return store.list().find(({ state, about }) => state === 'pending' && about.run === runId && about.call === callId)
}

/**
 * Applies a change set whose call ended because nobody could be asked, by an approval that came later and must be allowed already. It is
 * used up before anything is applied, so that no second process can apply the set again; a crash in between is found at the next start,
 * which writes the receipt. @throws FailureError `error` when the approval cannot be used, or the changes are gone or are others than those
 * that were shown
 */
async function applyLate({ memory, record, store, approval, by }: LateDecision): Promise<Applied> {
  const set = pendingSetOf(store, approval)
  if (!set) throw new FailureError('error', `the changes of ${approval.id} are no longer kept; ask the agent again`)
  if (set.review?.digest !== approval.plan)
    throw new FailureError('error', `the kept changes of ${approval.id} are not those that the approval is for; nothing was applied`)
  const done: { applied?: Applied } = {}
  const outcome = await createPendingChanges(memory, record).apply(approval.id, by, async () => {
    const applied = await store.apply({ id: set.id })
    done.applied = applied
    return applied.ok ? applied : { ...applied, ...fateOf(store, set.id) }
  })
  if (done.applied === undefined) throw new FailureError('error', outcome.ok ? 'nothing was applied' : outcome.message)
  return done.applied.ok || pendingSetOf(store, approval) === undefined ? done.applied : stillWaiting(done.applied, approval)
}

/** A set that is stuck is neither dropped nor pending. */
function fateOf(store: LateDecision['store'], id: string): { readonly changes?: 'pending' | 'dropped' } {
  const left = store.list().find((set) => set.id === id)
  if (left === undefined) return { changes: 'dropped' }
  return left.state === 'pending' ? { changes: 'pending' } : {}
}

function stillWaiting<Failed extends { readonly message: string }>(failed: Failed, { id, expires }: Approval): Failed {
  const until = new Date(expires).toISOString()
  const next = `The changes still wait, until ${until}: when that is settled, "approvals allow ${id}" tries again; "approvals deny ${id}" drops them`
  return { ...failed, message: `${failed.message}. ${next}` }
}
