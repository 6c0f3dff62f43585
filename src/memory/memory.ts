/** Combines all memory parts over one database file: journal, conversations, search, approvals, checkpoint. */

import type { JsonObject } from '../kit/json.ts'
import { lazy } from '../kit/lazy.ts'
import type { Checkpoint } from '../receipts/contract.ts'
import type { Clock, Log } from '../runtime/port.ts'
import { createTokenTable, type TokenTable } from './access-tokens.ts'
import { type Approvals, type ApprovalsOptions, createApprovals, sealUnsealed } from './approval-table.ts'
import { addTurn, type Conversations, createConversations } from './conversations/conversations.ts'
import { createContext } from './conversations/model-context.ts'
import { countChanges, createJournal, createReadLabels, type Journal, noteInHome, type ReadLabels } from './journal/journal.ts'
import { isAlive } from './journal/process-owner.ts'
import { sealedSince } from './migrations.ts'
import type { createProjector, Projector } from './projector.ts'
import type { Projections } from './rebuild/rebuild.ts'
import { createReplyTable, type ReplyTable } from './replies.ts'
import { createWindowTable, type WindowTable } from './spend/model-windows.ts'
import { type StorageFailure, storageFailure } from './storage-failure.ts'
import { openStore, type Store } from './store.ts'

/** Any call may throw SQLiteError because of file errors; `failureOf` turns that into a message. */
export type Memory = {
  readonly path: string
  /** For the tables that a turn does not use: the code that uses one creates it over the store. */
  readonly store: Store
  readonly journal: Journal
  readonly conversations: Conversations
  readonly approvals: Approvals
  readonly checkpoint: ReturnType<typeof createCheckpointTable>
  readonly actions: ReturnType<typeof createOperatorActions>
  readonly pending: ReturnType<typeof createPendingTable>
  readonly labels: ReadLabels
  readonly tokens: TokenTable
  readonly replies: ReplyTable
  readonly windows: WindowTable
  /** The files of agents. */
  readonly files: LazyProjector
  context: ReturnType<typeof createContext>
  /** Journals what happened outside of any run; `body` without secrets. Call it inside the transaction of the change that it reports. */
  note(type: string, body: unknown): number
  /** Imported on demand: a turn does not need it. */
  projections(): Promise<Projections>
  /** All or nothing, and on disk when it returns; nested transactions join it. See Store. */
  readonly transaction: Store['write']
  readonly lockWait: Store['lockWait']
  /** Within a transaction: undoes `body` if it throws, while the transaction continues. */
  separate<T>(body: () => T): T
  failureOf(error: unknown): StorageFailure | undefined
  close(): void
}

type MemoryOptions = {
  readonly path: string
  readonly log: Log
  readonly now: Clock
  readonly busyTimeoutMs?: number
  /** Seals approvals and standing rules; those with another seal do not count. Only tests and tools without a home leave it out. */
  readonly seal?: ApprovalsOptions['seal']
}

export type OpenedMemory = { readonly ok: true; readonly memory: Memory } | { readonly ok: false; readonly failure: StorageFailure }

/** `busyTimeoutMs`: as in StoreOptions. */
export function openMemory({ path, log, now, busyTimeoutMs, seal = () => undefined }: MemoryOptions): OpenedMemory {
  const migrated = (store: Store, from: number) => from < sealedSince && sealUnsealed(store, seal)
  const opened = openStore({ path, log, busyTimeoutMs, migrated })
  if (!opened.ok) return opened
  const { store } = opened
  const approvals = createApprovals(store, { now, seal, changes: countChanges(store, now) })
  const journal = createJournal(store, (turn, at) => addTurn(store, turn, at))
  return {
    ok: true,
    memory: {
      path,
      store,
      journal,
      conversations: createConversations(store),
      approvals,
      checkpoint: createCheckpointTable(store),
      actions: createOperatorActions(store),
      pending: createPendingTable(store),
      labels: createReadLabels(store),
      tokens: createTokenTable(store, now),
      replies: createReplyTable(store, now),
      windows: createWindowTable(store, now),
      files: lazyProjector({ store, journal, log }),
      context: createContext(store, now, approvals),
      note: (type, body) => noteInHome(store, now, type, body),
      projections: async () => (await import('./rebuild/rebuild.ts')).createProjections(store),
      transaction: store.write,
      lockWait: store.lockWait,
      separate: store.separate,
      failureOf: (error) => storageFailure(path, error),
      close: store.close,
    },
  }
}

/** Stores how far the receipts log is known to reach, beside the results it proves. */
function createCheckpointTable(store: Store) {
  function put({ logId, count, head, mac, size }: Checkpoint): void {
    const put = 'INSERT OR REPLACE INTO checkpoint VALUES (1, ?, ?, ?, ?, ?)'
    store.write(() => store.run(put, logId, count, head, mac, size))
  }

  return {
    get: () => store.sql<Checkpoint, []>('SELECT log_id AS logId, count, head, mac, size FROM checkpoint').get() ?? undefined,
    put,
    /** Returns the log that this database began, or will begin; any other log is foreign. */
    ownLog: () => store.sql<{ logId: string }, []>('SELECT log_id AS logId FROM own_log').get()?.logId ?? '',
    /** Makes this log its own, up to the checkpoint. */
    adopt(checkpoint: Checkpoint): void {
      store.write(() => {
        store.run('INSERT OR REPLACE INTO own_log VALUES (1, ?, 0)', checkpoint.logId)
        put(checkpoint)
      })
    },
    /** Returns how many receipts the log had before clears began to leave a receipt; these receipts may belong to no run. */
    older: () => store.sql<{ older: number }, []>('SELECT older FROM own_log').get()?.older ?? 0,
  }
}

/** Stores the plain text of operator actions outside of any run, because their receipts contain only its hash. */
function createOperatorActions(store: Store) {
  return {
    /** Call it in the transaction that writes the receipt. */
    keep(receiptId: string, input: JsonObject): void {
      const put = 'INSERT OR REPLACE INTO operator_actions VALUES (?, ?)'
      store.write(() => store.run(put, receiptId, JSON.stringify(input)))
    },
    /** Returns JSON; undefined when nothing is stored for that receipt. */
    wordsOf(receiptId: string): string | undefined {
      const found = store.sql<{ input: string }, [string]>('SELECT input FROM operator_actions WHERE receipt_id = ?')
      return found.get(receiptId)?.input
    },
  }
}

export type PendingRow = { readonly id: string; readonly by: string; readonly owner: string }

/** The changes that are being applied after the end of their run: the approval, who gave it, and the process that applies them. */
function createPendingTable(store: Store) {
  const dropped = `SELECT 1 AS one FROM journal WHERE run_id = ? AND type = 'drop' AND json_extract(body, '$.id') = ? LIMIT 1`
  return {
    put: ({ id, by, owner }: PendingRow) => void store.run('INSERT INTO applying(id, by, owner) VALUES (?, ?, ?)', id, by, owner),
    remove: (id: string) => void store.run('DELETE FROM applying WHERE id = ?', id),
    /** Returns the changes that a process was applying which no longer exists. */
    interrupted: () =>
      store
        .sql<PendingRow, []>('SELECT id, by, owner FROM applying')
        .all()
        .filter(({ owner }) => !isAlive(owner)),
    /** Tells whether the run has dropped the changes of that call. */
    isDropped: (runId: string, callId: string) => store.sql<{ one: number }, [string, string]>(dropped).get(runId, callId) !== null,
  }
}

/** Loads the projector when the first agent needs it: most turns keep no files of an agent. */
type LazyProjector = Projector & {
  /** Call it before the first run of an agent, and before `reset`. */
  prepare(): Promise<void>
}

function lazyProjector(options: Parameters<typeof createProjector>[0]): LazyProjector {
  const projector = lazy(async () => (await import('./projector.ts')).createProjector(options))

  function loaded(): Projector {
    const found = projector.current()
    if (!found) throw new Error('the files of an agent are used before they are prepared')
    return found
  }

  return {
    async prepare() {
      await projector.get()
    },
    begin(run, how) {
      if (run.agent) loaded().begin(run, how)
    },
    flush: (run) => projector.current()?.flush(run),
    reset: (agent, step) => loaded().reset(agent, step),
    drop: (run) => projector.current()?.drop(run),
  }
}
