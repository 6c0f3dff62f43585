/** Assembles the functions over the records of a home: for its host. */

import { statSync } from 'node:fs'
import { quote } from '../../kit/text.ts'
import { createSearch } from '../../memory/conversations/search-turns.ts'
import { attempts } from '../../memory/journal/attempts.ts'
import type { RunRecord } from '../../memory/journal/journal.ts'
import { isAlive } from '../../memory/journal/process-owner.ts'
import { type Anchor, anchorLine, parseAnchor } from '../../receipts/form/anchor.ts'
import type { Receipt } from '../../receipts/form/receipt.ts'
import { readReceipt } from '../../receipts/form/receipt.ts'
import { findLine, listReceipts } from '../../receipts/list-receipts.ts'
import { filesOf } from '../../receipts/segments.ts'
import type { Ending } from '../../runtime/event.ts'
import type { SetSummary } from '../../workspace/changes/contract.ts'
import { withoutGit } from '../changes/file-diff.ts'
import { changeSetOf, findKept, isForUndo, latestToUndo, nameOf } from '../changes/kept-changes.ts'
import { patchText } from '../changes/patch-text.ts'
import type { CallChanges, ChangeFacts, HostRecords, ReceiptPage, RunFacts, TranscriptStep, Undone } from '../contract/records-api.ts'
import { FailureError } from '../failure.ts'
import { realFolder } from '../setup/workspace-folder.ts'
import { approvalRecords } from './approvals.ts'
import { marksOfRun } from './claims/proof-of-run.ts'
import { conversationRecords } from './conversations.ts'
import { openKeptChanges, withReceipt } from './integrity/open-kept-changes.ts'
import { anchorNow, checkChain, checkReport, verifyInChild } from './integrity/receipt-check.ts'
import { pinRecords } from './pins.ts'
import { limited, type RecordsBase, resolveRun } from './records-base.ts'
import { sopRecords } from './sop-records.ts'
import { stopRecords } from './stop.ts'
import { toolFacts } from './tools.ts'
import { transcriptOf } from './transcript.ts'

export function createRecords(base: RecordsBase): HostRecords {
  const { setup, memory } = base
  const search = createSearch(memory.store, Date.now)
  return {
    conversations: conversationRecords(base),
    runs: runRecords(base),
    approvals: approvalRecords(base),
    receipts: receiptRecords(base),
    memory: { search: ({ limit, ...asked }) => search({ ...asked, limit: Math.max(1, Math.min(50, limit ?? 10)) }) },
    pins: pinRecords(setup),
    changes: changeRecords(base),
    stop: stopRecords({ path: setup.paths.estop, log: setup.log, redact: setup.redactor.text }),
    tools: () => toolFacts(setup),
    sops: sopRecords(base),
  }
}

/** Reads receipts page by page, and checks the whole chain. */
function receiptRecords({ setup, memory }: RecordsBase): HostRecords['receipts'] {
  const path = setup.config.receipts.path

  function newest(limit: number): ReceiptPage {
    const found = listReceipts({ path, limit })
    if (!found.ok) throw new FailureError('error', found.failure.message)
    return { receipts: found.receipts, unreadable: found.unreadable }
  }

  /** Finds each receipt by its number, so that a page costs the same wherever it is. */
  function following(after: number, limit: number): ReceiptPage {
    const last = memory.checkpoint.get()?.count ?? 0
    const through = Math.min(last, after + limit)
    const receipts: Receipt[] = []
    for (let seq = after + 1; seq <= through; seq += 1) {
      const line = findLine(path, seq)
      const receipt = line === undefined ? undefined : readReceipt(line)
      if (receipt) receipts.push(receipt)
    }
    const unreadable = Math.max(0, through - after - receipts.length)
    return { receipts, unreadable, ...(through < last ? { next: through } : {}) }
  }

  return {
    ofRun: (runId) => [...attempts(memory.store, runId)].flatMap(({ receiptId }) => receiptId ?? []),
    page: ({ after, limit } = {}) => (after === undefined ? newest(limited(limit, 50)) : following(Math.max(0, after), limited(limit, 50))),
    anchor() {
      const anchor = anchorNow(setup, memory)
      return { line: anchorLine(anchor), count: anchor.count, head: anchor.head }
    },
    async verify({ deep = false, against } = {}) {
      if (against !== undefined) anchorIn(against)
      if (bytesOf(path) > longLog) return verifyInChild(setup, { deep, against })
      const anchor = against === undefined ? undefined : anchorIn(against)
      return checkReport(checkChain({ setup, memory, deep, anchor }), deep)
    },
  }
}

const keptOf = ({ setup, memory }: RecordsBase) => openKeptChanges(setup, async (use) => use(memory))

/** Beyond this size, about 4,000 receipts, a check would hold up the turns of this process for too long. */
const longLog = 2_000_000

function bytesOf(path: string): number {
  return filesOf(path).reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0)
}

function anchorIn(line: string): Anchor {
  const anchor = parseAnchor(line)
  if (anchor) return anchor
  throw new FailureError('usage', `${quote(line.slice(0, 80))} is not an anchor line; one begins with bc1: and has about 130 characters`)
}

/** Lists runs, and shows one as a transcript with the receipt and the changes of each call. */
function runRecords(base: RecordsBase): HostRecords['runs'] {
  const { memory, setup } = base

  const listedRun = (run: RunRecord): RunFacts => ({ ...runFacts(run), prompt: memory.journal.prompt(run.runId) })

  return {
    list({ limit: asked, before, conversationId, ownedBy } = {}) {
      const limit = limited(asked, 20)
      const found = memory.journal.runs({ limit: limit + 1, before, conversation: conversationId, ownedBy })
      const page = found.slice(0, limit)
      const next = found.length > limit ? page.at(-1)?.runId : undefined
      return { runs: page.map(listedRun), next }
    },
    async show(ref) {
      const run = resolveRun(memory, ref)
      const { steps, usage } = transcriptOf(run.runId, memory.journal.events(run.runId))
      const isChanged = steps.some((step) => step.type === 'call' && step.changes?.set !== undefined)
      const sets = isChanged ? (await keptOf(base)).list().filter(({ about }) => about.run === run.runId) : []
      const proof = await marksOfRun({ ...run, setup, journal: memory.journal })
      return { ...listedRun(run), steps: steps.map((step) => withSet(step, sets)), usage, digest: run.digest ?? undefined, proof }
    },
  }
}

function runFacts({ runId, conversationId, turnId, channel, provider, model, started, ended, code, message, owner }: RunRecord): RunFacts {
  const facts = { runId, conversationId, turnId, channel, provider, model, started }
  if (ended === null) return { ...facts, running: isAlive(owner) }
  return { ...facts, ended, ...(isCode(code) ? { code } : {}), ...(message === null ? {} : { message }), running: false }
}

/** The column has what `Ending.code` had when the run ended. */
function isCode(code: string | null): code is Ending['code'] {
  return code !== null
}

/** Adds what the kept change set knows. */
function withSet(step: TranscriptStep, sets: readonly SetSummary[]): TranscriptStep {
  if (step.type !== 'call' || step.changes === undefined) return step
  const set = sets.find(({ about }) => about.call === step.callId)
  if (!set) return step
  const { state, count, review } = set
  const changes: CallChanges = { ...step.changes, state, count, ...(review ? { summary: review.summary } : {}) }
  return { ...step, changes }
}

/** Lists, shows and undoes the change sets of a home. */
function changeRecords(base: RecordsBase): HostRecords['changes'] {
  const { setup, memory, record, live } = base

  async function undoSet(set: SetSummary, { force = false }: { readonly force?: boolean }): Promise<Undone> {
    const store = await keptOf(base)
    const undone = await withReceipt(record, { tool: 'changes.undo', set }, () => store.undo(set.id, { force }))
    const name = nameOf(set)
    if (!undone.ok) return { ok: false, name, message: undone.message, conflicts: undone.conflicts }
    live?.written()
    return { ok: true, name, count: undone.count }
  }

  return {
    async list({ limit, runId, ownedBy } = {}) {
      const sets = (await keptOf(base)).list()
      const isSeen = ({ about }: SetSummary) => ownedBy === undefined || memory.tokens.ownerOf(about.conversation) === ownedBy
      return sets
        .filter((set) => (runId === undefined || set.about.run === runId) && isSeen(set))
        .slice(0, limited(limit, 50))
        .map(changeFacts)
    },
    async show(ref) {
      const store = await keptOf(base)
      const shown = store.show(findKept(store.list(), ref).id)
      if (!shown) throw new FailureError('error', 'the change set was forgotten meanwhile; see: braidclaw changes list')
      const set = changeSetOf(shown)
      const paths = withoutGit(set).others.changes.map(({ path }) => path)
      return { ...changeFacts(shown), patch: patchText(set), paths, undone: shown.undone }
    },
    async undo(ref, how = {}) {
      const sets = (await keptOf(base)).list()
      const workspace = realFolder(setup.config.workspaceDir)
      return undoSet(ref === 'last' ? latestToUndo(sets, workspace) : findKept(sets, ref), how)
    },
    async undoRun(runId, how = {}) {
      const sets = (await keptOf(base)).list().filter((set) => set.about.run === runId && isForUndo(set))
      if (sets.length === 0) throw new FailureError('error', `run ${runId} left no changes that can be undone; see: braidclaw changes list`)
      const done: Undone[] = []
      for (const set of sets) {
        const undone = await undoSet(set, how)
        done.push(undone)
        if (!undone.ok) break
      }
      return done
    },
  }
}

function changeFacts({ state, about, workspace, count, review, ...set }: SetSummary): ChangeFacts {
  const { run: runId, call: callId, conversation: conversationId, tool, command, at } = about
  const name = nameOf({ about, ...set })
  return { name, state, runId, callId, conversationId, tool, at, workspace, count, command, summary: review?.summary }
}
