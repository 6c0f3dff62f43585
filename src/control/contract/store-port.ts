/** Defines what the control plane needs of its database: commands are generators that yield one SQL text with parameters at a time. */

/** Booleans are stored as 0 and 1, times as milliseconds since 1970, objects as JSON text. */
export type Param = string | number | null
export type Row = Readonly<Record<string, string | number | null>>
/** `?` marks a parameter. The text is the same for SQLite and PostgreSQL. */
export type Statement = readonly [sql: string, params?: readonly Param[]]

/**
 * A command receives only the handle of its own transaction: it yields statements and gets their rows back. Nothing comes between a statement
 * without SELECT and RETURNING, which answers no rows, and the statement after it.
 */
export type Command<T> = Generator<Statement, T, readonly Row[]>

export type Engine = 'sqlite' | 'postgres'

/** What differs between the engines, inside a command. */
export type Dialect = {
  readonly engine: Engine
  /** ` FOR UPDATE` or nothing. */
  readonly forUpdate: string
}

/**
 * Lets a command run between the statements of others of its kind with another key, in one transaction: they share the way to the database.
 * Such a command changes only what its key names, or whatever one statement can decide and change by itself; otherwise it is `alone()` first.
 */
export type Beside = { readonly kind: string; readonly key: string }

export type Store = {
  readonly dialect: Dialect
  /**
   * Runs a command as one transaction that is durable when the promise resolves; commands that wait at the same time share a transaction, one
   * after the other or, on PostgreSQL, `beside` each other. What the command throws undoes only its own writes. Retried after 40001 and 40P01.
   */
  write<T>(command: () => Command<T>, beside?: Beside): Promise<T>
  /** As `write`, for commands that only read. */
  read<T>(command: () => Command<T>): Promise<T>
  /** Called after each commit of this or another daemon that announced the topic with `announce`; topics: `events`, `tasks`, `agents`. */
  listen(topic: string, heard: () => void): () => void
  /** Wakes the listeners of a topic after this command's commit. For use inside a command. */
  announce(topic: string): Command<void>
  /**
   * From here on the command is the only one of its transaction: for one that runs beside others and must do more. What it has read before may
   * have changed.
   */
  alone(): Command<void>
  /** Runs `work` in one process of all daemons at a time (schedules); undefined when another one holds the lock. */
  exclusively<T>(lock: string, work: () => Promise<T>): Promise<T | undefined>
  /** How far the clock of the database is ahead of this process's, in ms; several daemons agree on leases by it. Absent: they are one machine's. */
  skewMs?(): number
  /** SQLite only: writes one state of the whole database into a new file of mode 0600. */
  vacuumInto?(path: string): Promise<void>
  /** Whether the database answers, without using the pool; for /health. */
  readonly reachable: boolean
  close(): Promise<void>
}
