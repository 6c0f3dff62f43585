/** Lists, shows and undoes the change sets of a home. */

import type { SetSummary } from '../../workspace/changes/contract.ts'
import { withoutGit } from '../changes/file-diff.ts'
import { changeSetOf, findKept, isForUndo, latestToUndo, nameOf } from '../changes/kept-changes.ts'
import { patchText } from '../changes/patch-text.ts'
import type { ChangeFacts, HostRecords, Undone } from '../contract/records-api.ts'
import { FailureError } from '../failure.ts'
import { realFolder } from '../setup/workspace-folder.ts'
import { openKeptChanges } from './integrity/open-kept-changes.ts'
import { withReceipt } from './late-decision.ts'
import { limited, type RecordsBase } from './records-base.ts'

type How = { readonly force?: boolean }

export function changeRecords(base: RecordsBase): HostRecords['changes'] {
  const { setup, memory, record, live } = base

  async function undoSet(set: SetSummary, { force = false }: How): Promise<Undone> {
    const store = await openKeptChanges(setup, async (use) => use(memory))
    const undone = await withReceipt(record, { tool: 'changes.undo', set }, () => store.undo(set.id, { force }))
    const name = nameOf(set)
    if (!undone.ok) return { ok: false, name, message: undone.message, conflicts: undone.conflicts }
    live?.written()
    return { ok: true, name, count: undone.count }
  }

  return {
    async list({ limit, runId, ownedBy } = {}) {
      const sets = (await openKeptChanges(setup, async (use) => use(memory))).list()
      const isSeen = ({ about }: SetSummary) => ownedBy === undefined || memory.tokens.ownerOf(about.conversation) === ownedBy
      return sets
        .filter((set) => (runId === undefined || set.about.run === runId) && isSeen(set))
        .slice(0, limited(limit, 50))
        .map(factsOf)
    },
    async show(wanted) {
      const store = await openKeptChanges(setup, async (use) => use(memory))
      const shown = store.show(findKept(store.list(), wanted).id)
      if (!shown) throw new FailureError('error', 'the change set was forgotten meanwhile; see: braidclaw changes list')
      const set = changeSetOf(shown)
      const paths = withoutGit(set).others.changes.map(({ path }) => path)
      return { ...factsOf(shown), patch: patchText(set), paths, undone: shown.undone }
    },
    async undo(wanted, how = {}) {
      const sets = (await openKeptChanges(setup, async (use) => use(memory))).list()
      const workspace = realFolder(setup.config.workspaceDir)
      return undoSet(wanted === 'last' ? latestToUndo(sets, workspace) : findKept(sets, wanted), how)
    },
    async undoRun(runId, how = {}) {
      const sets = (await openKeptChanges(setup, async (use) => use(memory)))
        .list()
        .filter((set) => set.about.run === runId && isForUndo(set))
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

function factsOf({ state, about, workspace, count, review, ...set }: SetSummary): ChangeFacts {
  const { run, call, conversation, tool, command, at } = about
  return {
    name: nameOf({ about, ...set }),
    state,
    runId: run,
    callId: call,
    conversationId: conversation,
    tool,
    at,
    workspace,
    count,
    ...(command === undefined ? {} : { command }),
    ...(review ? { summary: review.summary } : {}),
  }
}
