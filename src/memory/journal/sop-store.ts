/** Stores the runs of procedures: what each began with, how its steps ended, and what it waits for. */

import type { Clock } from '../../runtime/port.ts'
import { isLocked } from '../storage-failure.ts'
import type { Store } from '../store.ts'
import { noteInHome } from './journal.ts'
import { isAlive } from './process-owner.ts'

/** `asked`: whether an effect happened is unknown, and a person has to say so. */
export type SopState = 'running' | 'waiting' | 'asked' | 'done' | 'failed' | 'cancelled'

export type SopRunRow = {
  readonly id: string
  readonly name: string
  /** Names the version that the run began with. */
  readonly digest: string
  /** The real path. */
  readonly workspace: string
  readonly inputs: { readonly [name: string]: string }
  readonly startedBy: string
  readonly state: SopState
  /** Why it failed or waits; otherwise empty. */
  readonly why: string
  /** The process that runs it; empty while it waits. */
  readonly owner: string
  readonly started: number
  readonly ended: number | null
  /** How the turn ended that made it fail; otherwise empty. */
  readonly code: string
  readonly outputs: { readonly [name: string]: string }
  /** The chat that gets its questions and its answer. */
  readonly channel: string | null
  readonly recipient: string | null
}

export type SopStepRow = {
  readonly step: string
  readonly attempt: number
  readonly state: 'running' | 'waiting' | 'asked' | 'done' | 'failed' | 'skipped'
  /** The order in which the steps ended; null before the end. */
  readonly place: number | null
  readonly output: string
  readonly why: string
  readonly conversationId: string | null
  /** The approval that it waits for. */
  readonly question: string | null
  /** How the turn of a failed step ended; otherwise empty. */
  readonly code: string
}

export type SopStore = ReturnType<typeof createSopStore>

const runColumns =
  'id, name, digest, workspace, inputs, started_by AS startedBy, state, why, owner, started, ended, code, outputs, channel, recipient'
const stepColumns = 'step, attempt, state, place, output, why, conversation_id AS conversationId, question, code'

type StoredRun = Omit<SopRunRow, 'inputs' | 'outputs'> & { readonly inputs: string; readonly outputs: string }

export function createSopStore(store: Store, now: Clock) {
  const { sql, write } = store
  const rowOf = (row: StoredRun): SopRunRow => ({ ...row, inputs: JSON.parse(row.inputs), outputs: JSON.parse(row.outputs) })

  function find(id: string): SopRunRow | undefined {
    const found = sql<StoredRun, [string]>(`SELECT ${runColumns} FROM sop_runs WHERE id = ?`).get(id)
    return found ? rowOf(found) : undefined
  }

  function add(run: Omit<SopRunRow, 'state' | 'why' | 'started' | 'ended' | 'code' | 'outputs'>, text: string): void {
    const columns = 'id, name, digest, workspace, inputs, started_by, state, why, owner, started, channel, recipient'
    const insert = `INSERT INTO sop_runs(${columns}) VALUES (?, ?, ?, ?, ?, ?, 'running', '', ?, ?, ?, ?)`
    write(() => {
      store.run('INSERT OR IGNORE INTO sop_versions VALUES (?, ?)', run.digest, text)
      store.run(
        insert,
        ...[run.id, run.name, run.digest, run.workspace, JSON.stringify(run.inputs), run.startedBy],
        ...[run.owner, now(), run.channel, run.recipient],
      )
      noteInHome(store, now, 'sop.changed', { id: run.id, state: 'running' })
    })
  }

  /** Sets the state of a run that has not ended. */
  function setState(id: string, state: SopState, { why = '', owner = '', code = '', outputs = {} } = {}): void {
    write(() => {
      const isOver = state === 'done' || state === 'failed' || state === 'cancelled'
      const update = 'UPDATE sop_runs SET state = ?, why = ?, owner = ?, ended = ?, code = ?, outputs = ? WHERE id = ? AND ended IS NULL'
      const { changes } = store.run(update, state, why, owner, isOver ? now() : null, code, JSON.stringify(outputs), id)
      if (changes > 0) noteInHome(store, now, 'sop.changed', { id, state })
    })
  }

  /**
   * Writes what the journal and the approvals could rebuild: it survives the death of the process, and is on disk with the next transaction,
   * which is that of the next effect. Not within another transaction.
   */
  function later<T>(body: () => T): T {
    try {
      return store.writeLater(body)
    } catch (error) {
      if (isLocked(error)) return write(body)
      throw error
    }
  }

  /** Takes a run that no living process runs. @returns false when another one does, or it has ended */
  function take(id: string, owner: string): boolean {
    return later(() => {
      const run = find(id)
      if (run === undefined || run.ended !== null || (run.owner !== owner && run.owner !== '' && isAlive(run.owner))) return false
      setState(id, 'running', { owner })
      return true
    })
  }

  return { find, add, setState, take, ...createStepTable(store), ...createRunList(store, now, rowOf), later, transaction: write }
}

function createStepTable({ sql, run, write }: Store) {
  return {
    /** In the order of their ends; those that have not ended come last. */
    steps: (id: string) =>
      sql<SopStepRow, [string]>(`SELECT ${stepColumns} FROM sop_steps WHERE run_id = ? ORDER BY place IS NULL, place`).all(id),
    putStep(id: string, row: SopStepRow): void {
      const { step, attempt, state, place, output, why, conversationId, question, code } = row
      const put = 'INSERT OR REPLACE INTO sop_steps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)'
      write(() => void run(put, id, step, attempt, state, place, output, why, conversationId, question, code))
    },
  }
}

/** Lists runs: for a person, and for a process that stays. */
function createRunList({ sql, run, write }: Store, now: Clock, rowOf: (row: StoredRun) => SopRunRow) {
  return {
    textOf: (digest: string) => sql<{ text: string }, [string]>('SELECT text FROM sop_versions WHERE digest = ?').get(digest)?.text,
    /** Returns the runs that have not ended, newest first. */
    open: () => sql<StoredRun, []>(`SELECT ${runColumns} FROM sop_runs WHERE ended IS NULL ORDER BY rowid DESC`).all().map(rowOf),
    /** Newest first. */
    list: ({ name, limit }: { readonly name?: string | undefined; readonly limit: number }) =>
      sql<StoredRun, [string | null, number]>(
        `SELECT ${runColumns} FROM sop_runs WHERE ?1 IS NULL OR name = ?1 ORDER BY rowid DESC LIMIT ?2`,
      )
        .all(name ?? null, limit)
        .map(rowOf),
    /** Returns the runs that can continue: their question was answered, or that of the procedure has expired, or their process died. */
    ready(): readonly string[] {
      const answered = sql<{ id: string }, [number]>(
        `SELECT DISTINCT r.id FROM sop_runs r JOIN sop_steps s ON s.run_id = r.id AND s.state IN ('waiting', 'asked')
         JOIN approvals a ON a.id = s.question WHERE r.state IN ('waiting', 'asked') AND (a.state <> 'open' OR (a.expires <= ? AND a.tool LIKE 'sop.%'))`,
      )
      const running = sql<{ id: string; owner: string }, []>(`SELECT id, owner FROM sop_runs WHERE state = 'running' AND owner <> ''`)
      const dead = running.all().filter(({ owner }) => !isAlive(owner))
      return [...answered.all(now()), ...dead].map(({ id }) => id)
    },
    /** Returns the runs whose chat may not know yet what they wait for or how they ended, and the ids of the questions that it got. */
    unnotified: (channels: readonly string[]) =>
      sql<{ id: string; notified: string }, [string]>(
        `SELECT id, notified FROM sop_runs WHERE channel IN (SELECT value FROM json_each(?)) AND channel IS NOT NULL AND notified <> 'end'`,
      ).all(JSON.stringify(channels)),
    setNotified: (id: string, notified: string) => write(() => void run('UPDATE sop_runs SET notified = ? WHERE id = ?', notified, id)),
    /** Changes whenever this or another process has written to the database. */
    version() {
      const [own, others] = [
        sql<{ n: number }, []>('SELECT total_changes() AS n'),
        sql<{ data_version: number }, []>('PRAGMA data_version'),
      ]
      return `${own.get()?.n} ${others.get()?.data_version}`
    },
  }
}
