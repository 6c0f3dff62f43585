/** Stores schedules: definitions, runs, the lease, and the addresses of channels. */

import type { ToolOutcome } from '../runtime/event.ts'
import type { Clock } from '../runtime/port.ts'
import { noteInHome } from './journal/journal.ts'
import { isAlive } from './journal/process-owner.ts'
import { type ChannelStore, createChannelStore } from './recovery/channel-store.ts'
import type { Store } from './store.ts'

export type ScheduleStore = {
  readonly schedules: ScheduleTable
  readonly fired: FiredTable
  readonly lease: Lease
  readonly addresses: AddressesTable
  readonly channels: ChannelStore
  readonly transaction: Store['write']
  /** Notes in the journal which run a schedule began, for those who follow the home. */
  noteFired(fired: { readonly schedule: string; readonly runId: string; readonly conversationId?: string }): void
  /** Returns the result of the last call of a run, whatever became of its changes. */
  lastOutcomeOf(runId: string): ToolOutcome | undefined
}

/** Returns what the checks of schedules said of the runs that they began, by run id. */
export function scheduleChecks({ sql }: Store): ReadonlyMap<string, { readonly checked: string; readonly command: string | null }> {
  const rows = sql<{ run: string; checked: string; command: string | null }, []>(
    `SELECT run_id AS run, schedule_runs.checked AS checked, check_command AS command FROM schedule_runs
     LEFT JOIN schedules ON id = schedule_id WHERE run_id IS NOT NULL AND schedule_runs.checked IS NOT NULL`,
  )
  return new Map(rows.all().map(({ run, ...check }) => [run, check]))
}

export function createScheduleStore(store: Store, now: Clock): ScheduleStore {
  return {
    schedules: createScheduleTable(store),
    fired: createFiredTable(store, (type, body) => noteInHome(store, now, type, body)),
    lease: createLease(store),
    addresses: createAddressesTable(store),
    channels: createChannelStore(store),
    transaction: store.write,
    noteFired: (fired) => void noteInHome(store, now, 'schedule.fired', fired),
    lastOutcomeOf(runId) {
      const find = store.sql<{ readonly outcome: string }, [string]>(
        `SELECT body -> '$.outcome' AS outcome FROM journal WHERE run_id = ? AND type IN ('tool.changed', 'tool.done')
         ORDER BY seq DESC LIMIT 1`,
      )
      const found = find.get(runId)
      return found ? JSON.parse(found.outcome) : undefined
    },
  }
}

type AddressesTable = {
  keep(channel: string, conversationId: string, address: string): void
  of(channel: string, conversationId: string): string | undefined
}

/** Stores where each conversation of a channel was heard last, so that a channel can send there after a restart. */
function createAddressesTable({ sql, run, writeLater }: Store): AddressesTable {
  const find = sql<{ address: string }, [string, string]>('SELECT address FROM channel_addresses WHERE channel = ? AND conversation_id = ?')
  const of: AddressesTable['of'] = (channel, conversationId) => find.get(channel, conversationId)?.address
  return {
    of,
    keep(channel, conversationId, address) {
      if (of(channel, conversationId) === address) return
      const put = 'INSERT OR REPLACE INTO channel_addresses VALUES (?, ?, ?)'
      writeLater(() => void run(put, channel, conversationId, address))
    },
  }
}

type Lease = {
  /** Takes or renews the lease. @returns whether this process holds it now */
  hold(owner: string, now: number): boolean
  /** Returns the living process that holds it. */
  holder(now: number): string | undefined
  release(owner: string): void
}

/** A process that is stopped but alive loses the lease after this time. */
const leaseMs = 120_000

type LeaseRow = { readonly owner: string; readonly until: number }

/**
 * Decides which of several processes of a home starts what is due: one holds the lease, and another takes it when that process has ended.
 */
function createLease({ sql, run, write }: Store): Lease {
  const find = sql<LeaseRow, []>('SELECT owner, until FROM schedule_lease')

  /** A lease that ends further ahead than any lease can was written before the clock was set back. */
  function isFree({ owner, until }: LeaseRow, now: number): boolean {
    return until < now || until > now + leaseMs || !isAlive(owner)
  }

  return {
    hold(owner, now) {
      const known = find.get()
      if (known && known.owner !== owner && !isFree(known, now)) return false
      if (known?.owner === owner && !isFree(known, now) && known.until - now > leaseMs / 2) return true
      return write(() => {
        const held = find.get()
        if (held && held.owner !== owner && !isFree(held, now)) return false
        run('INSERT OR REPLACE INTO schedule_lease VALUES (1, ?, ?)', owner, now + leaseMs)
        return true
      })
    },
    holder(now) {
      const held = find.get()
      return held && !isFree(held, now) ? held.owner : undefined
    },
    release: (owner) => write(() => void run('DELETE FROM schedule_lease WHERE owner = ?', owner)),
  }
}

type ScheduleTable = {
  list(): ScheduleRow[]
  named(name: string): ScheduleRow | undefined
  /** @returns false when the name is taken */
  add(row: ScheduleRow): boolean
  change(id: string, definition: ScheduleDefinition, checked: number): void
  setState(id: string, state: ScheduleState, about: { readonly why?: string; readonly checked: number }): void
  setChecked(id: string, checked: number): void
  setFailures(id: string, failures: number): void
  /** Removes the schedule and its history. */
  remove(id: string): void
  /** A number that changes whenever another process has written to the database. */
  version(): number
}

const scheduleColumns = `id, name, kind, spec, zone, anchor, message, workspace, agent, autonomy, conversation, channel, recipient,
  check_command AS checkCommand, missed, overlap, pause_after AS pauseAfter, state, why, checked, failures, created,
  made_in_chat AS madeInChat`

const places = '?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?'

/** Stores schedules: what a person decided, and which of them are active. */
function createScheduleTable(store: Store): ScheduleTable {
  const { sql, run, write } = store
  return {
    list: () => sql<ScheduleRow, []>(`SELECT ${scheduleColumns} FROM schedules ORDER BY created, name`).all(),
    named(name) {
      return (
        sql<ScheduleRow, [string, string]>(`SELECT ${scheduleColumns} FROM schedules WHERE name = ? OR id = ?`).get(name, name) ?? undefined
      )
    },
    add(row) {
      const put = `INSERT INTO schedules VALUES (${places}) ON CONFLICT (name) DO NOTHING`
      return write(() => run(put, ...valuesOf(row)).changes > 0)
    },
    change(id, definition, checked) {
      write(() => {
        const row = sql<ScheduleRow, [string]>(`SELECT ${scheduleColumns} FROM schedules WHERE id = ?`).get(id)
        if (!row) return
        const put = `INSERT OR REPLACE INTO schedules VALUES (${places})`
        run(put, ...valuesOf({ ...row, ...definition, checked }))
      })
    },
    setState(id, state, { why = '', checked }) {
      const put = 'UPDATE schedules SET state = ?, why = ?, checked = ?, failures = 0 WHERE id = ?'
      write(() => void run(put, state, why, checked, id))
    },
    setChecked: (id, checked) => write(() => void run('UPDATE schedules SET checked = ? WHERE id = ?', checked, id)),
    setFailures: (id, failures) => write(() => void run('UPDATE schedules SET failures = ? WHERE id = ?', failures, id)),
    remove(id) {
      write(() => {
        run('DELETE FROM schedule_runs WHERE schedule_id = ?', id)
        run('DELETE FROM schedules WHERE id = ?', id)
      })
    },
    version: () => sql<{ data_version: number }, []>('PRAGMA data_version').get()?.data_version ?? 0,
  }
}

type SqlValues = (string | number | null)[]

function valuesOf(row: ScheduleRow): SqlValues {
  const { id, name, kind, spec, zone, anchor, message, workspace, agent, autonomy, conversation, channel, recipient } = row
  const { checkCommand, missed, overlap, pauseAfter, state, why, checked, failures, created, madeInChat } = row
  return [
    ...[id, name, kind, spec, zone, anchor, message, workspace, agent, autonomy, conversation, channel, recipient],
    ...[checkCommand, missed, overlap, pauseAfter, state, why, checked, failures, created, madeInChat],
  ]
}

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
  /** `again`: another attempt follows later. A run whose answer never can be sent is not good. */
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

/** The most rows of a schedule that the table keeps. */
const mostRows = 200

const columns = `schedule_id AS scheduleId, due, attempt, state, fired, owner, started_by AS startedBy, passed_over AS passedOver,
  conversation_id AS conversationId, run_id AS runId, ended, ending, message, checked, tokens, micros, unsent, sender, tries, sent`
/** Journals what happened outside of any run. Called inside the transaction of what it tells. */
export type WriteNote = (type: string, body: object) => void

const ofKey = 'schedule_id = ? AND due = ? AND attempt = ?'
type Key = [string, number, number]

/** Stores the runs of schedules. A row exists before its run is started, and a due time has one row, so no process starts a run twice. */
function createFiredTable({ sql, run, write }: Store, note: WriteNote): FiredTable {
  const nameOf = (id: string) => sql<{ name: string }, [string]>('SELECT name FROM schedules WHERE id = ?').get(id)?.name ?? id
  const put = `INSERT INTO schedule_runs(schedule_id, due, attempt, state, fired, owner, started_by, passed_over, message)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET state = excluded.state, fired = excluded.fired, owner = excluded.owner,
     message = excluded.message WHERE schedule_runs.state = 'missed' AND excluded.state = 'running'`
  const trim = `DELETE FROM schedule_runs WHERE schedule_id = ? AND state <> 'running' AND unsent IS NULL AND due <
       (SELECT due FROM schedule_runs WHERE schedule_id = ? ORDER BY due DESC LIMIT 1 OFFSET ?)`

  function fire({ scheduleId, due, attempt, state, fired, owner, startedBy, passedOver, message = '' }: Firing): boolean {
    return write(() => {
      const isNew = run(put, scheduleId, due, attempt, state, fired, owner, startedBy, passedOver, message).changes > 0
      if (isNew) {
        run(trim, scheduleId, scheduleId, mostRows)
        if (state !== 'running') note('schedule.ended', { schedule: nameOf(scheduleId), state })
      }
      return isNew
    })
  }

  function end(key: FiredKey, { state, ended, ending, message, checked, tokens, micros, unsent }: FiredEnd): boolean {
    const update = `UPDATE schedule_runs SET state = ?, ended = ?, ending = ?, message = ?, checked = ?, tokens = ?, micros = ?, unsent = ?
       WHERE ${ofKey} AND state = 'running'`
    return write(() => {
      const isOpen = run(update, state, ended, ending, message, checked, tokens, micros, unsent, ...keyOf(key)).changes > 0
      if (isOpen) note('schedule.ended', { schedule: nameOf(key.scheduleId), state })
      return isOpen
    })
  }

  function claimUnsent(channels: readonly string[], { owner, wants }: Parameters<FiredTable['claimUnsent']>[1]): Unsent | undefined {
    type UnsentRow = Unsent & { readonly sender: string | null }
    const open = sql<UnsentRow, [string]>(
      `SELECT r.schedule_id AS scheduleId, due, attempt, owner, ended, unsent, tries, sender, channel, recipient FROM schedule_runs r
       JOIN schedules s ON s.id = r.schedule_id WHERE unsent IS NOT NULL AND channel IN (SELECT value FROM json_each(?)) ORDER BY ended`,
    )
    const take = `UPDATE schedule_runs SET sender = ? WHERE ${ofKey}`
    const isFree = (row: UnsentRow) => (row.sender === null || !isAlive(row.sender)) && wants(row)
    // Most looks find nothing, and need no lock for that.
    if (!open.all(JSON.stringify(channels)).some(isFree)) return undefined
    return write(() => {
      const found = open.all(JSON.stringify(channels)).find(isFree)
      if (found) run(take, owner, ...keyOf(found))
      return found
    })
  }

  return {
    fire,
    setConversation: (key, id) => write(() => void run(`UPDATE schedule_runs SET conversation_id = ? WHERE ${ofKey}`, id, ...keyOf(key))),
    setRun: (key, id) => write(() => void run(`UPDATE schedule_runs SET run_id = ? WHERE ${ofKey}`, id, ...keyOf(key))),
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
      const update = `UPDATE schedule_runs SET sent = ?, tries = tries + 1, sender = NULL, unsent = iif(? = 1, unsent, NULL),
         state = iif(? = 1 AND state = 'good', 'bad', state) WHERE ${ofKey}`
      const isLost = !again && sent.startsWith('not sent')
      write(() => void run(update, sent, again ? 1 : 0, isLost ? 1 : 0, ...keyOf(key)))
    },
  }
}

function keyOf({ scheduleId, due, attempt }: FiredKey): Key {
  return [scheduleId, due, attempt]
}

/** The part of a schedule that a person decides. Times are milliseconds since 1970. */
export type ScheduleDefinition = {
  readonly name: string
  readonly kind: 'at' | 'every' | 'cron'
  /** The time for `at`, the interval in milliseconds for `every`, the expression for `cron`. */
  readonly spec: string
  /** An IANA time zone. */
  readonly zone: string
  /** Intervals are counted from here. */
  readonly anchor: number
  readonly message: string
  readonly workspace: string
  readonly agent: string | null
  readonly autonomy: string | null
  readonly conversation: 'new' | 'same'
  readonly channel: string | null
  /** A conversation id, or the address that the channel itself uses. */
  readonly recipient: string | null
  readonly checkCommand: string | null
  readonly missed: 'run-once' | 'skip' | 'run-all'
  readonly overlap: 'skip' | 'wait'
  /** After so many failures in a row the schedule pauses; 0: never. */
  readonly pauseAfter: number
  /** 1 when the agent made it for the chat `recipient`: it may then do no more than that channel permits. */
  readonly madeInChat: 0 | 1
}

export type ScheduleState = 'active' | 'paused' | 'done'

export type ScheduleRow = ScheduleDefinition & {
  readonly id: string
  readonly state: ScheduleState
  /** Why it is paused; otherwise empty. */
  readonly why: string
  /** Due times up to this one were handled. */
  readonly checked: number
  /** Failures in a row. */
  readonly failures: number
  readonly created: number
}

/**
 * `running` until the run has ended; `good` and `bad` as run and check say; `interrupted` when its process ended first; `missed` and
 * `skipped` were never run.
 */
export type FiredState = 'running' | 'good' | 'bad' | 'interrupted' | 'missed' | 'skipped'

export type FiredKey = { readonly scheduleId: string; readonly due: number; readonly attempt: number }

export type FiredRow = FiredKey & {
  readonly state: FiredState
  readonly fired: number
  readonly owner: string
  readonly startedBy: 'timer' | 'hand'
  /** How many earlier due times this one stands for. */
  readonly passedOver: number
  readonly conversationId: string | null
  readonly runId: string | null
  readonly ended: number | null
  /** The code of the run's ending. */
  readonly ending: string | null
  readonly message: string | null
  /** `passed`, or why the check did not pass. */
  readonly checked: string | null
  readonly tokens: number | null
  /** Millionths of a US dollar; null when the price is unknown. */
  readonly micros: number | null
  /** The text that the channel has not sent yet. */
  readonly unsent: string | null
  readonly sender: string | null
  readonly tries: number
  /** When it was sent, or why it was not. */
  readonly sent: string | null
}

export type FiredEnd = Pick<FiredRow, 'ending' | 'message' | 'checked' | 'tokens' | 'micros' | 'unsent'> & {
  readonly state: 'good' | 'bad' | 'interrupted'
  readonly ended: number
}
