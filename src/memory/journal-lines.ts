/** Computes the lines of one agent's files from the journal, in the order of its entries. */

import { type AgentFile, agentFiles } from './agent-files/agent-paths.ts'
import { createRunLines, type RunLine } from './agent-files/run-lines.ts'
import type { JournalEntry } from './journal/journal-entry.ts'
import { agentIn } from './journal/runs/run-agent.ts'
import type { Store } from './store.ts'

export type JournalLine = RunLine & {
  readonly runId: string
  readonly seq: number
  readonly /** The position of the line among this run's lines in this file, from 0. */ number: number
}

type Row = Omit<JournalEntry, 'body'> & { readonly body: string }

const columns = 'seq, kind, type, at, body'

/** @param key of the folder; see folderKey */
export function* toldLines(store: Store, key: string): Generator<JournalLine> {
  const rows = store.sql<Row & { readonly runId: string; readonly agent: string }, [string]>(
    `SELECT ${columns}, run_id AS runId, agent FROM journal JOIN runs USING (run_id) WHERE agent ->> 'folder' = ? ORDER BY seq`,
  )
  const runs = new Map<string, (row: Row) => readonly JournalLine[]>()
  for (const { runId, agent, ...row } of rows.iterate(key)) {
    const next = runs.get(runId) ?? linesOfRun(store.path, runId, agent)
    runs.set(runId, next)
    yield* next(row)
  }
}

/**
 * Tells whether a file contains exactly the last part of the expected lines, because a compaction or a person cut it. Takes time in
 * proportion to the file. @returns the number of the journal entry before its first line
 */
export function matchesEnd(
  store: Store,
  { key, file, texts }: { readonly key: string; readonly file: AgentFile; readonly texts: readonly string[] },
) {
  const runs = store.sql<{ runId: string }, [string]>(`SELECT run_id AS runId FROM runs WHERE agent ->> 'folder' = ? ORDER BY rowid DESC`)
  let left = texts.length
  let since: number | undefined
  for (const { runId } of left === 0 ? [] : runs.iterate(key)) {
    for (const line of linesByRun(store, runId).toReversed()) {
      if (line.file !== file) continue
      if (left === 0) return line.seq === since ? undefined : (since ?? 0) - 1
      left -= 1
      if (line.text !== texts[left]) return undefined
      since = line.seq
    }
  }
  return left === 0 && since !== undefined ? since - 1 : undefined
}

/** Returns all lines of one run so far. */
export function linesByRun(store: Store, runId: string): readonly JournalLine[] {
  const agent = store.sql<{ agent: string | null }, [string]>('SELECT agent FROM runs WHERE run_id = ?').get(runId)?.agent ?? null
  return entriesAfter(store, runId, 0).flatMap(linesOfRun(store.path, runId, agent))
}

export function entriesAfter(store: Store, runId: string, seq: number): readonly Row[] {
  return store.sql<Row, [string, number]>(`SELECT ${columns} FROM journal WHERE run_id = ? AND seq > ? ORDER BY seq`).all(runId, seq)
}

/** @returns a function that takes the rows of a run in order; a row with invalid JSON gives no lines */
export function linesOfRun(path: string, runId: string, agentText: string | null): (row: Row) => readonly JournalLine[] {
  const agent = agentIn(path, agentText)
  const next = agent && createRunLines({ runId, agent })
  const counts = new Map(agentFiles.map((file) => [file, 0]))
  return (row) => {
    const entry = next && entryOf(row)
    if (!next || !entry) return []
    return next(entry).map((line) => {
      const number = counts.get(line.file) ?? 0
      if (!line.foreign) counts.set(line.file, number + 1)
      return { ...line, runId, seq: row.seq, number }
    })
  }
}

function entryOf(row: Row): JournalEntry | undefined {
  try {
    return { ...row, body: JSON.parse(row.body) }
  } catch {
    return undefined
  }
}
