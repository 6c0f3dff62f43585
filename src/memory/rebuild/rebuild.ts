/** Checks the tables derived from the journal (turns, conversations, the search index) against it, or rebuilds them from it. */

import { attempt } from '../../kit/errors.ts'
import { canonical } from '../../kit/json.ts'
import type { RunIdentity } from '../../runtime/port.ts'
import { insertLine, insertValues, type TurnRow, turnColumns, turnOfRow } from '../conversations/conversations.ts'
import { alteredSummary, disprovedSummary, dropDisproved } from '../conversations/summaries.ts'
import { entryColumns, entryOf, type JournalRow } from '../journal/journal-entry.ts'
import { projectTurns } from '../journal/turns.ts'
import type { Store } from '../store.ts'
import { compare, turnsFromJournal, Unreadable } from './compare-turns.ts'
import { type AgentFilesCheck, createFilesCheck } from './rebuild-files.ts'

/** SHA-256 in hex over all stored rows and over all rows from the journal. `difference` describes the first difference. */
export type ProjectionCheck = {
  readonly equal: boolean
  readonly live: string
  readonly rebuilt: string
  readonly turns: number
  readonly difference?: string
}

export type RebuildResult = { readonly ok: true; readonly turns: number } | { readonly ok: false; readonly message: string }

/** Called from time to time with the progress, from 0 to 1. */
export type Progress = (share: number) => void

export type Projections = {
  /** Changes nothing; other processes may write, except for a moment while the index is checked. */
  check(progress?: Progress): ProjectionCheck
  /**
   * Deletes and rebuilds the tables, or leaves all unchanged. Also deletes summaries that the journal disproves. Other writers wait
   * meanwhile.
   */
  rebuild(progress?: Progress): RebuildResult
  /** The files of agents. */
  readonly files: AgentFilesCheck
  /** Compares the turns of one run with its journal. @returns the first difference */
  differenceIn(run: RunIdentity): string | undefined
  /** Checks the summaries of a conversation, which are not derived from the journal. @returns the first altered one */
  alteredSummary(conversationId: string): string | undefined
}

export function createProjections(store: Store): Projections {
  function check(progress: Progress = () => {}): ProjectionCheck {
    try {
      const found = compare(store, turnsFromJournal(store, entries(store, progress)))
      const difference = found.difference ?? disprovedSummary(store)?.message
      return { ...found, equal: difference === undefined, difference }
    } catch (error) {
      if (error instanceof Unreadable) return { equal: false, live: '', rebuilt: '', turns: 0, difference: error.message }
      throw error
    }
  }

  function rebuild(progress: Progress = () => {}): RebuildResult {
    try {
      return store.write(() => {
        store.script(`INSERT INTO turns_fts(turns_fts) VALUES ('delete-all'); DELETE FROM turns; DELETE FROM conversations`)
        const { turns, conversations } = turnsFromJournal(store, entries(store, progress))
        let count = 0
        for (const values of turns) {
          insertValues(store, values)
          count += 1
        }
        for (const [id, line] of conversations) insertLine(store, id, line)
        store.script(`INSERT INTO turns_fts(turns_fts) VALUES ('rebuild')`)
        dropDisproved(store)
        return { ok: true, turns: count }
      })
    } catch (error) {
      if (error instanceof Unreadable) return { ok: false, message: error.message }
      throw error
    }
  }

  function differenceIn(run: RunIdentity): string | undefined {
    const rows = store.sql<JournalRow, [string]>(`SELECT ${entryColumns} FROM journal WHERE run_id = ? ORDER BY seq`).all(run.runId)
    const read = rows.map(entryOf)
    const unread = read.indexOf(undefined)
    if (unread >= 0) return `journal entry ${rows[unread]?.seq} of ${run.runId} is not valid JSON`
    const expected = projectTurns(
      run,
      read.flatMap((entry) => entry ?? []),
    )
    const query = store.sql<TurnRow, [string]>(`SELECT ${turnColumns} FROM turns WHERE run_id = ? ORDER BY journal_seq, id`)
    const shown = query.all(run.runId).map((row) => attempt(() => canonical(turnOfRow(row))) ?? 'no JSON')
    const at = Array.from({ length: Math.max(expected.length, shown.length) }, (_, each) => each).find(
      (each) => expected[each] === undefined || canonical(expected[each]) !== shown[each],
    )
    return at === undefined ? undefined : `turn row ${at + 1} of ${run.runId} is not what its journal says`
  }

  return {
    check,
    rebuild,
    files: createFilesCheck(store),
    differenceIn,
    alteredSummary: (conversationId) => alteredSummary(store, conversationId)?.message,
  }
}

/** Reports progress after every few thousand entries. */
function entries(store: Store, progress: Progress): (seq: number) => void {
  const last = store.sql<{ seq: number }, []>('SELECT coalesce(max(seq), 1) AS seq FROM journal').get()?.seq ?? 1
  let next = 0
  return (seq) => {
    if (seq < next) return
    next = seq + 5000
    progress(seq / last)
  }
}
