/** Stores every external event, intent and note of every run in the order written, notes about the home itself, and which process owns each run. */

import { dirname, join, relative } from 'node:path'
import { isObject, parseJson } from '../../kit/json.ts'
import type { Seal } from '../../receipts/contract.ts'
import type { Label, Risk } from '../../runtime/event.ts'
import type { Clock, RunAgent, RunIdentity } from '../../runtime/port.ts'
import type { ChangeCount } from '../approval-table.ts'
import type { Store } from '../store.ts'
import { digestOf, entryColumns, type JournalEntry, type StoredEntry } from './journal-entry.ts'
import { isAlive, thisProcess } from './process-owner.ts'
import { alteredRun, sealAgain, sealEnd } from './run-end.ts'
import { spentOfRun } from './spent-of-run.ts'
import { type Turn, turnOf } from './turns.ts'

export type RunRecord = RunIdentity & {
  /** The process that runs it; see process-owner.ts. */
  readonly owner: string
  readonly started: number
  readonly ended: number | null
  /** `Ending.code`, null while it runs. */
  readonly code: string | null
  readonly message: string | null
  readonly digest: string | null
}

/** An act that has started and has no result yet, with the data its receipt needs. */
export type OpenIntent = {
  readonly runId: string
  readonly callId: string
  readonly tool: string
  readonly risk: Risk
  readonly argsHash: string
  readonly approval: string | null
  /** The sandbox value that the receipt records whatever the result. */
  readonly sandbox: 'none' | null
  /** How many receipts the log had when the act started, according to the checkpoint. */
  readonly receiptsBefore: number
}

type JournalAppend = Omit<JournalEntry, 'seq' | 'body'> & { readonly run: RunIdentity; readonly body: unknown }

/** `before`: the id of the last run of an earlier page. `ownedBy`: only runs of conversations that the token of this id began. */
type RunsQuery = {
  readonly limit: number
  readonly conversation?: string | undefined
  readonly before?: string | undefined
  readonly ownedBy?: string | undefined
}

export type Journal = ReturnType<typeof createJournal>

const runColumns = `run_id AS runId, conversation_id AS conversationId, turn_id AS turnId, provider, model, channel, owner, started, ended, code,
  message, digest`
const intentColumns =
  'run_id AS runId, call_id AS callId, tool, risk, args_hash AS argsHash, approval, sandbox, receipts_before AS receiptsBefore'

/**
 * Runs without an end, or with an act whose result is still missing. With UNION instead of UNION ALL, SQLite scans all runs in the order of
 * their ids.
 */
export const unfinishedRuns = 'SELECT run_id FROM runs WHERE ended IS NULL UNION ALL SELECT run_id FROM intents'

const insertEntry = 'INSERT INTO journal(run_id, kind, type, at, body, digest) VALUES (?, ?, ?, ?, ?, ?)'

export function createJournal(store: Store, addTurn: (turn: Turn, at: { readonly seq: number; readonly at: number }) => void) {
  const owner = thisProcess()

  /** On disk when it returns, together with the turn row it creates. @throws SQLiteError */
  function append({ run, kind, type, at, body }: JournalAppend): number {
    const text = JSON.stringify(body) ?? 'null'
    return store.write(() => {
      const last = lastOf(run.runId)
      if (last === null) insertRun(run, at)
      const digest = digestOf(run.runId, last?.digest ?? null, { kind, type, at, body: text })
      const { lastInsertRowid } = store.run(insertEntry, run.runId, kind, type, at, text, digest)
      const seq = Number(lastInsertRowid)
      const turn = turnOf(run, { kind, type, at, body }, (callId) => openIntent(run.runId, callId)?.tool)
      if (turn) addTurn(turn, { seq, at })
      return seq
    })
  }

  function lastOf(runId: string): Pick<StoredEntry, 'digest'> | null {
    return store
      .sql<Pick<StoredEntry, 'digest'>, [string]>('SELECT digest FROM journal WHERE run_id = ? ORDER BY seq DESC LIMIT 1')
      .get(runId)
  }

  /** Adds the run's row with its first entry. */
  function insertRun(run: RunIdentity, at: number): void {
    const { runId, conversationId, turnId, provider, model, channel, folder, agent, token } = run
    const optional = [folder ?? null, agent ? agentText(store.path, agent) : null, token ?? null]
    const insert = `INSERT OR IGNORE INTO runs(run_id, conversation_id, turn_id, provider, model, channel, owner, started, folder,
         agent, token) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
    store.run(insert, runId, conversationId, turnId, provider, model, channel, owner, at, ...optional)
  }

  /** Returns the number of the newest entry, 0 without any. */
  function latest(): number {
    return store.sql<{ seq: number }, []>('SELECT coalesce(max(seq), 0) AS seq FROM journal').get()?.seq ?? 0
  }

  function events(runId: string): JournalEntry[] {
    return store
      .sql<Omit<JournalEntry, 'body'> & { body: string }, [string]>(
        'SELECT seq, kind, type, at, body FROM journal WHERE run_id = ? ORDER BY seq',
      )
      .all(runId)
      .map((row) => ({ ...row, body: JSON.parse(row.body) }))
  }

  /** Newest first. */
  function runs({ limit, conversation, before, ownedBy }: RunsQuery): RunRecord[] {
    // Includes only the conditions of this request: a query for "all, or these" would read every run.
    const conditions = [
      ...(conversation === undefined ? [] : ['conversation_id = ?']),
      ...(before === undefined ? [] : ['rowid < (SELECT rowid FROM runs AS last WHERE last.run_id = ?)']),
      ...(ownedBy === undefined ? [] : ['conversation_id IN (SELECT conversation_id FROM token_conversations WHERE token_id = ?)']),
    ]
    const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
    const given = [conversation, before, ownedBy].filter((each) => each !== undefined)
    return store
      .sql<RunRecord, (string | number)[]>(`SELECT ${runColumns} FROM runs ${where} ORDER BY rowid DESC LIMIT ?`)
      .all(...given, limit)
  }

  /**
   * Yields the runs since this time, in milliseconds since 1970, oldest first. `start` is the body of their `run.start`; null when their entries
   * were cleared.
   */
  function beginnings(since: number): IterableIterator<RunRecord & { readonly start: string | null }> {
    const start = `SELECT body FROM journal WHERE journal.run_id = runs.run_id AND type = 'run.start' ORDER BY seq LIMIT 1`
    return store
      .sql<RunRecord & { start: string | null }, [number]>(
        `SELECT ${runColumns}, (${start}) AS start FROM runs WHERE started >= ? ORDER BY rowid`,
      )
      .iterate(since)
  }

  /** Returns the entries of a run as stored. */
  function stored(runId: string): StoredEntry[] {
    return store.sql<StoredEntry, [string]>(`SELECT ${entryColumns}, digest FROM journal WHERE run_id = ? ORDER BY seq`).all(runId)
  }

  function run(runId: string): RunRecord | undefined {
    return store.sql<RunRecord, [string]>(`SELECT ${runColumns} FROM runs WHERE run_id = ?`).get(runId) ?? undefined
  }

  /** Returns the question of the run, shortened to 200 characters. */
  function prompt(runId: string): string | undefined {
    const rows = store.sql<{ prompt: string | null }, [string]>(
      `SELECT substr(coalesce(json_extract(body, '$.continues.asked'), json_extract(body, '$.prompt')), 1, 200) AS prompt FROM journal WHERE run_id = ? AND type = 'run.start' LIMIT 1`,
    )
    return rows.get(runId)?.prompt ?? undefined
  }

  /** Returns runs without an end, and ended runs that have an act without a result, of any process. Oldest first. */
  function unfinished() {
    // Runs at every start, and most starts find nothing: uses an index, and avoids the temporary tables of the query below.
    const any = store.sql<{ one: number }, []>('SELECT 1 AS one FROM runs WHERE ended IS NULL UNION ALL SELECT 1 FROM intents LIMIT 1')
    if (any.get() === null) return []
    const open = store.sql<RunRecord, []>(`SELECT ${runColumns} FROM runs WHERE run_id IN (${unfinishedRuns}) ORDER BY rowid`)
    return open.all().map((record) => ({ ...record, intents: intentsOf(record.runId) }))
  }

  function intentsOf(runId: string): OpenIntent[] {
    return store.sql<OpenIntent, [string]>(`SELECT ${intentColumns} FROM intents WHERE run_id = ? ORDER BY call_id`).all(runId)
  }

  function openIntent(runId: string, callId: string): OpenIntent | undefined {
    const found = store.sql<OpenIntent, [string, string]>(`SELECT ${intentColumns} FROM intents WHERE run_id = ? AND call_id = ?`)
    return found.get(runId, callId) ?? undefined
  }

  function begin({ runId, callId, tool, risk, argsHash, approval, sandbox, receiptsBefore }: OpenIntent): void {
    const insert =
      'INSERT INTO intents(run_id, call_id, tool, risk, args_hash, approval, sandbox, receipts_before) VALUES (?, ?, ?, ?, ?, ?, ?, ?)'
    store.run(insert, runId, callId, tool, risk, argsHash, approval, sandbox, receiptsBefore)
  }

  /** Stores the person who approved the changes of an act. */
  function approve(runId: string, callId: string, by: string): void {
    store.run('UPDATE intents SET approval = ? WHERE run_id = ? AND call_id = ?', by, runId, callId)
  }

  function settle(runId: string, callId: string): void {
    store.run('DELETE FROM intents WHERE run_id = ? AND call_id = ?', runId, callId)
  }

  function end(
    runId: string,
    { at, code, message, digest }: Pick<RunRecord, 'digest'> & { at: number; code: string; message: string },
  ): void {
    const update = 'UPDATE runs SET ended = ?, code = ?, message = ?, digest = ?, spent = ? WHERE run_id = ? AND ended IS NULL'
    store.run(update, at, code, message, digest, spentOfRun(store, runId), runId)
  }

  /** Tells whether the journal has entries of this run; they may have been cleared. */
  function hasEntries(runId: string): boolean {
    return store.sql<{ one: number }, [string]>('SELECT 1 AS one FROM journal WHERE run_id = ? LIMIT 1').get(runId) !== null
  }

  /** Tells whether an attempt of this conversation names the receipt as its own. */
  function names(receiptId: string, conversationId: string): boolean {
    // Inside a string value the quotes would be escaped, so this matches only the member itself.
    const member = `"receipt":${JSON.stringify(receiptId)}`
    const found = store.sql<{ one: number }, [string, string]>(
      `SELECT 1 AS one FROM journal JOIN runs USING (run_id)
       WHERE conversation_id = ? AND type IN ('tool.done', 'deny', 'drop') AND instr(body, ?) > 0 LIMIT 1`,
    )
    return found.get(conversationId, member) !== null
  }

  /** Tells whether any entry names a receipt. */
  function namesAny(): boolean {
    const found = store.sql<{ one: number }, []>(
      `SELECT 1 AS one FROM journal WHERE type IN ('tool.done', 'deny', 'drop') AND instr(body, '"receipt":"receipt-') > 0 LIMIT 1`,
    )
    return found.get() !== null
  }

  /** Yields the ids of all runs, newest first. */
  function* ids(): Generator<string> {
    const rows = store.sql<{ runId: string }, []>('SELECT run_id AS runId FROM runs ORDER BY rowid DESC')
    for (const { runId } of rows.iterate()) yield runId
  }

  /** Deletes the row of a run without journal entries. */
  function forget(runId: string): void {
    store.run('DELETE FROM runs WHERE run_id = ?', runId)
  }

  return {
    /** Returns the first altered entry, found by the running digest, or an error in the run's end; see journal-entry.ts and run-end.ts. */
    alteredIn: (runId: string, seal?: Seal) => alteredRun(store, runId, seal),
    /** Seals the end that was just written. */
    sealEnd: (runId: string, seal: Seal) => sealEnd(store, runId, seal),
    /** Seals an ended run again after one more entry, if the old seal matches the earlier entries. */
    sealAgain: (runId: string, seal: Seal) => sealAgain(store, runId, seal),
    append,
    latest,
    events,
    runs,
    run,
    beginnings,
    stored,
    /** Returns the latest run of the conversation that began or continued a turn, besides `except`. */
    latestTurn: (conversation: string, except?: string) =>
      runs({ limit: 50, conversation }).find(({ runId }) => runId !== except && prompt(runId) !== undefined),
    prompt,
    unfinished,
    openIntent,
    begin,
    settle,
    approve,
    end,
    hasEntries,
    names,
    namesAny,
    ids,
    forget,
  }
}

export type ReadLabels = ReturnType<typeof createReadLabels>

/** Keeps what the calls of a conversation have read, private data or content of others, so that its next run knows. */
export function createReadLabels(store: Store) {
  return {
    /** Call it in the transaction that journals the beginning of the call. */
    keep(conversationId: string, labels: readonly Label[]): void {
      const put = 'INSERT OR IGNORE INTO read_labels VALUES (?, ?)'
      for (const label of labels) if (label !== 'sends') store.run(put, conversationId, label)
    },
    of: (conversationId: string) =>
      store
        .sql<{ label: Label }, [string]>('SELECT label FROM read_labels WHERE conversation_id = ? ORDER BY label')
        .all(conversationId)
        .map(({ label }) => label),
  }
}

/** Returns the name of a folder in the database: relative to it, so that a home can be moved. */
export function folderKey(databasePath: string, folder: string): string {
  return relative(dirname(databasePath), folder)
}

export function folderOfKey(databasePath: string, key: string): string {
  return join(dirname(databasePath), key)
}

export function agentText(databasePath: string, agent: RunAgent): string {
  return JSON.stringify({ ...agent, folder: folderKey(databasePath, agent.folder) })
}

/** Returns undefined for a run without an agent, and for text that our code did not write. */
export function agentIn(databasePath: string, text: string | null): RunAgent | undefined {
  const value = parseJson(text ?? 'null')
  if (!isObject(value)) return undefined
  const { id, folder, pointer, remembers } = value
  if (typeof id !== 'string' || typeof folder !== 'string' || typeof pointer !== 'string') return undefined
  return { id, folder: folderOfKey(databasePath, folder), pointer, ...(remembers === true ? { remembers } : {}) }
}

/** Returns the runs that dead processes left unfinished. */
export function deadRuns(journal: Journal): ReturnType<Journal['unfinished']> {
  return journal.unfinished().filter(({ owner }) => !isAlive(owner))
}

/** Stands for the run in notes about what an operator did in a home. Whatever reads the journal of runs leaves these notes out. */
export const homeRun = 'home'

/** Call it inside the transaction of the change that it reports. `body`: without secrets. @returns its number */
export function noteInHome(store: Store, now: Clock, type: string, body: unknown): number {
  const [at, text] = [now(), JSON.stringify(body)]
  const last = store
    .sql<{ digest: string | null }, [string]>('SELECT digest FROM journal WHERE run_id = ? ORDER BY seq DESC LIMIT 1')
    .get(homeRun)
  const digest = digestOf(homeRun, last?.digest ?? null, { kind: 'note', type, at, body: text })
  const { lastInsertRowid } = store.run(insertEntry, homeRun, 'note', type, at, text, digest)
  return Number(lastInsertRowid)
}

const changed = 'approval.changed'

/** Counts the changes of approvals in the journal. */
export function countChanges(store: Store, now: Clock): ChangeCount {
  const last = `SELECT max(json_extract(body, '$.revision')) AS revision FROM journal
    WHERE run_id = ? AND type = ? AND at >= ? AND json_extract(body, '$.id') = ?`
  return {
    add: (id, revision) => void noteInHome(store, now, changed, { id, revision }),
    last: (id, since) =>
      store.sql<{ revision: number | null }, [string, string, number, string]>(last).get(homeRun, changed, since, id)?.revision ?? 0,
  }
}
