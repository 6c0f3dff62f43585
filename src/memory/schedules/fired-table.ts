/** Stores the runs of schedules. A row exists before its run is started, and a due time has one row, so no process starts a run twice. */

import { isAlive } from '../journal/process-owner.ts'
import type { Store } from '../store.ts'
import type { FiredEnd, FiredKey, FiredRow } from './schedule-row.ts'

export type Firing = Pick<FiredRow, 'scheduleId' | 'due' | 'attempt' | 'fired' | 'owner' | 'startedBy' | 'passedOver'> & {
  readonly state: 'running' | 'missed' | 'skipped'
  readonly message?: string
}

export type FiredTable = {
  /** @returns false when this due time has its row already; a due time that was only missed may still be started */
  fire(firing: Firing): boolean
  /** Call it before the run begins, so that a later process can tell whether it began. */
  setConversation(key: FiredKey, conversationId: string): void
  setRun(key: FiredKey, runId: string): void
  /** @returns false when the row has ended already, or is gone */
  end(key: FiredKey, end: FiredEnd): boolean
  /** Returns the run that a dead process began for this row. */
  runOf(row: Pick<FiredRow, 'conversationId' | 'fired'>): string | undefined
  /** Returns the rows whose runs have not ended. */
  running(): FiredRow[]
  last(scheduleId: string, limit: number): FiredRow[]
  /** Returns when the latest run ended. */
  lastEnded(scheduleId: string): number | undefined
  /** Takes the oldest unsent text of one of these channels that `wants` accepts; another process may take it when this one has died. */
  claimUnsent(channels: readonly string[], claim: { readonly owner: string; wants(text: Unsent): boolean }): Unsent | undefined
  /** `again`: another attempt follows later. */
  setSent(key: FiredKey, sent: string, again: boolean): void
}

export type Unsent = FiredKey & {
  /** The process that ran it, and when the run ended. */
  readonly owner: string
  readonly ended: number
  readonly unsent: string
  readonly tries: number
  readonly channel: string
  readonly recipient: string
}

/** How many rows of a schedule are kept. */
const kept = 200

const columns = `schedule_id AS scheduleId, due, attempt, state, fired, owner, started_by AS startedBy, passed_over AS passedOver,
  conversation_id AS conversationId, run_id AS runId, ended, ending, message, checked, tokens, micros, unsent, sender, tries, sent`
/** Journals what happened outside of any run. Called inside the transaction of what it tells. */
export type Note = (type: string, body: object) => void

const ofKey = 'schedule_id = ? AND due = ? AND attempt = ?'
type Key = [string, number, number]

export function createFiredTable({ sql, write }: Store, note: Note): FiredTable {
  const nameOf = (id: string) => sql<{ name: string }, [string]>('SELECT name FROM schedules WHERE id = ?').get(id)?.name ?? id
  const put = sql<never, [string, number, number, string, number, string, string, number, string | null]>(
    `INSERT INTO schedule_runs(schedule_id, due, attempt, state, fired, owner, started_by, passed_over, message) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET state = excluded.state, fired = excluded.fired, owner = excluded.owner, message = excluded.message
     WHERE schedule_runs.state = 'missed' AND excluded.state = 'running'`,
  )
  const trim = sql<never, [string, string, number]>(
    `DELETE FROM schedule_runs WHERE schedule_id = ? AND state <> 'running' AND unsent IS NULL AND due <
       (SELECT due FROM schedule_runs WHERE schedule_id = ? ORDER BY due DESC LIMIT 1 OFFSET ?)`,
  )

  function fire({ scheduleId, due, attempt, state, fired, owner, startedBy, passedOver, message = '' }: Firing): boolean {
    return write(() => {
      const isNew = put.run(scheduleId, due, attempt, state, fired, owner, startedBy, passedOver, message).changes > 0
      if (isNew) {
        trim.run(scheduleId, scheduleId, kept)
        if (state !== 'running') note('schedule.ended', { schedule: nameOf(scheduleId), state })
      }
      return isNew
    })
  }

  function end(key: FiredKey, { state, ended, ending, message, checked, tokens, micros, unsent }: FiredEnd): boolean {
    const update = sql<never, (string | number | null)[]>(
      `UPDATE schedule_runs SET state = ?, ended = ?, ending = ?, message = ?, checked = ?, tokens = ?, micros = ?, unsent = ?
       WHERE ${ofKey} AND state = 'running'`,
    )
    return write(() => {
      const isOpen = update.run(state, ended, ending, message, checked, tokens, micros, unsent, ...keyOf(key)).changes > 0
      if (isOpen) note('schedule.ended', { schedule: nameOf(key.scheduleId), state })
      return isOpen
    })
  }

  function claimUnsent(channels: readonly string[], { owner, wants }: Parameters<FiredTable['claimUnsent']>[1]): Unsent | undefined {
    type Row = Unsent & { readonly sender: string | null }
    const open = sql<Row, [string]>(
      `SELECT r.schedule_id AS scheduleId, due, attempt, owner, ended, unsent, tries, sender, channel, recipient FROM schedule_runs r
       JOIN schedules s ON s.id = r.schedule_id WHERE unsent IS NOT NULL AND channel IN (SELECT value FROM json_each(?)) ORDER BY ended`,
    )
    const take = sql<never, [string, ...Key]>(`UPDATE schedule_runs SET sender = ? WHERE ${ofKey}`)
    const isFree = (row: Row) => (row.sender === null || !isAlive(row.sender)) && wants(row)
    // Most looks find nothing, and need no lock for that.
    if (!open.all(JSON.stringify(channels)).some(isFree)) return undefined
    return write(() => {
      const found = open.all(JSON.stringify(channels)).find(isFree)
      if (found) take.run(owner, ...keyOf(found))
      return found
    })
  }

  return {
    fire,
    setConversation: (key, id) =>
      write(() => void sql<never, [string, ...Key]>(`UPDATE schedule_runs SET conversation_id = ? WHERE ${ofKey}`).run(id, ...keyOf(key))),
    setRun: (key, id) =>
      write(() => void sql<never, [string, ...Key]>(`UPDATE schedule_runs SET run_id = ? WHERE ${ofKey}`).run(id, ...keyOf(key))),
    end,
    runOf({ conversationId, fired }) {
      if (conversationId === null) return undefined
      const find = sql<{ id: string }, [string, number]>(
        'SELECT run_id AS id FROM runs WHERE conversation_id = ? AND started >= ? ORDER BY started LIMIT 1',
      )
      return find.get(conversationId, fired)?.id
    },
    running: () => sql<FiredRow, []>(`SELECT ${columns} FROM schedule_runs WHERE state = 'running' ORDER BY fired`).all(),
    last: (scheduleId, limit) =>
      sql<FiredRow, [string, number]>(
        `SELECT ${columns} FROM schedule_runs WHERE schedule_id = ? ORDER BY fired DESC, due DESC, attempt DESC LIMIT ?`,
      ).all(scheduleId, limit),
    lastEnded(scheduleId) {
      const find = sql<{ ended: number | null }, [string]>('SELECT max(ended) AS ended FROM schedule_runs WHERE schedule_id = ?')
      return find.get(scheduleId)?.ended ?? undefined
    },
    claimUnsent,
    setSent(key, sent, again) {
      const update = sql<never, [string, number, ...Key]>(
        `UPDATE schedule_runs SET sent = ?, tries = tries + 1, sender = NULL, unsent = iif(? = 1, unsent, NULL) WHERE ${ofKey}`,
      )
      write(() => void update.run(sent, again ? 1 : 0, ...keyOf(key)))
    },
  }
}

function keyOf({ scheduleId, due, attempt }: FiredKey): Key {
  return [scheduleId, due, attempt]
}
