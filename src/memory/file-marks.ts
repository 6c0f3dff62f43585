/** Stores in the database how far each agent file is accounted for, and which runs have lines that are not confirmed in the files yet. */

import type { AgentFile } from './agent-files/agent-paths.ts'
import type { FileMark } from './agent-files/file-mark.ts'
import { type JournalLine, linesByRun } from './journal-lines.ts'
import type { Store } from './store.ts'

/** A run with lines that were not found in the files at the last check. `seen` counts the lines that were. */
export type PendingRun = {
  readonly runId: string
  readonly owner: string
  /** The run has ended, and no entry follows. */
  readonly over: boolean
  readonly lines: readonly JournalLine[]
  readonly seen: { [file in AgentFile]: number }
  /** Returns the first line not seen yet. */
  next(file: AgentFile): string | undefined
}

/** More runs than this are never active at once: older ones belong to a folder that cannot be written. */
const mostPending = 256

type FileMarkRow = Omit<FileMark, 'open'> & { readonly open: string }

export function createFileMarks(store: Store) {
  function get(folder: string, file: AgentFile): FileMark | undefined {
    const row = store
      .sql<FileMarkRow, [string, string]>(
        'SELECT bytes, lines, tail, since, base, base_sha256 AS baseSha256, open FROM agent_files WHERE folder = ? AND file = ?',
      )
      .get(folder, file)
    return row ? { ...row, open: JSON.parse(row.open) } : undefined
  }

  function put(folder: string, file: string, { bytes, lines, tail, since, base, baseSha256, open }: FileMark): void {
    const insert = `INSERT INTO agent_files(folder, file, bytes, lines, tail, since, base, base_sha256, open)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET bytes = excluded.bytes, lines = excluded.lines, tail = excluded.tail,
      since = excluded.since, base = excluded.base, base_sha256 = excluded.base_sha256, open = excluded.open`
    store.run(insert, folder, file, bytes, lines, tail, since, base, baseSha256, JSON.stringify(open))
  }

  /** Tells whether this home was used before its files were accounted for. */
  function isOlder(): boolean {
    return store.sql(`SELECT 1 FROM agent_files WHERE folder = '' AND file = ''`).get() !== null
  }

  function lastSeq(): number {
    return store.sql<{ seq: number }, []>('SELECT coalesce(max(seq), 0) AS seq FROM journal').get()?.seq ?? 0
  }

  /** Oldest first. */
  function pending(folder: string): PendingRun[] {
    const rows = store
      .sql<{ runId: string; owner: string; over: number; trace: number; session: number; history: number }, [string]>(
        `SELECT run_id AS runId, owner, trace, session, history,
           ended IS NOT NULL AND NOT EXISTS (SELECT 1 FROM intents WHERE intents.run_id = runs.run_id) AS over
         FROM unprojected JOIN runs USING (run_id) WHERE unprojected.folder = ? ORDER BY unprojected.rowid`,
      )
      .all(folder)
    for (const { runId } of rows.slice(0, -mostPending)) forget(runId)
    return rows.slice(-mostPending).map(({ runId, owner, over, ...seen }) => pendingRun(store, { runId, owner, over: over === 1, seen }))
  }

  function settle({ runId, over, seen, next }: PendingRun): void {
    const isAll = next('trace') === undefined && next('session') === undefined && next('history') === undefined
    if (over && isAll) {
      forget(runId)
      return
    }
    const { trace, session, history } = seen
    store.run('UPDATE unprojected SET trace = ?, session = ?, history = ? WHERE run_id = ?', trace, session, history, runId)
  }

  function enter(runId: string, folder: string): void {
    store.run('INSERT INTO unprojected(run_id, folder, trace, session, history) VALUES (?, ?, 0, 0, 0)', runId, folder)
  }

  function forget(runId: string): void {
    store.run('DELETE FROM unprojected WHERE run_id = ?', runId)
  }

  return { get, put, isOlder, lastSeq, pending, settle, enter }
}

function pendingRun(store: Store, run: Pick<PendingRun, 'runId' | 'owner' | 'over' | 'seen'>): PendingRun {
  const lines = linesByRun(store, run.runId)
  const own = (file: AgentFile) => lines.filter((line) => line.file === file && !line.foreign)
  const byFile = { trace: own('trace'), session: own('session'), history: own('history') }
  return { ...run, lines, next: (file) => byFile[file][run.seen[file]]?.text }
}
