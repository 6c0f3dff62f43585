/** Defines what the control plane needs of its database: commands are generators that yield one SQL text with parameters at a time. */

/** Booleans are stored as 0 and 1, times as milliseconds since 1970, objects as JSON text. */
export type Param = string | number | null
export type Row = Readonly<Record<string, string | number | null>>
/** Marks each parameter by `?`. The text is the same for SQLite and PostgreSQL. */
export type Statement = readonly [sql: string, params?: readonly Param[]]

/**
 * Yields statements of its own transaction and receives their rows. No statement comes between one without SELECT and RETURNING, which
 * returns no rows, and the statement after it.
 */
export type Command<T> = Generator<Statement, T, readonly Row[]>

export type Engine = 'sqlite' | 'postgres'

/** Tells a command how the engines differ. */
export type Dialect = {
  readonly engine: Engine
  /** ` FOR UPDATE` or nothing. */
  readonly forUpdate: string
}

/**
 * Lets a command run between the statements of others of its kind with another key, in one transaction: they share the way to the database.
 * Such a command changes only what its key names, or what one statement can decide and change by itself; before anything else it calls
 * `exclusive()`.
 */
export type BatchKey = { readonly kind: string; readonly key: string }

export type Store = {
  readonly dialect: Dialect
  /**
   * Runs a command as one transaction that is durable when the promise resolves. Commands that wait at the same time share a transaction, one
   * after the other or, on PostgreSQL, in a batch. A command that throws undoes only its own writes. It is retried after 40001 and 40P01.
   */
  write<T>(command: () => Command<T>, batchKey?: BatchKey): Promise<T>
  /** Runs a command that only reads. */
  read<T>(command: () => Command<T>): Promise<T>
  /** Calls `listener` after each commit of this or another daemon that announced the topic; topics: `events`, `tasks`, `agents`. */
  listen(topic: string, listener: () => void): () => void
  /** Wakes the listeners of a topic after this command's commit. Called inside a command. */
  announce(topic: string): Command<void>
  /**
   * Makes the command the only one of its transaction from here on, for one that runs in a batch and must do more. What it has read before
   * may have changed.
   */
  exclusive(): Command<void>
  /** Runs `work` in one daemon at a time (schedules); returns undefined when another one has the lock. */
  withLock<T>(lock: string, work: () => Promise<T>): Promise<T | undefined>
  /**
   * Returns by how many ms the clock of the database is ahead of this process's; several daemons agree on leases by it. Absent when both run
   * on one machine.
   */
  skewMs?(): number
  /** Writes one state of the whole database into a new file of mode 0600; SQLite only. */
  vacuumInto?(path: string): Promise<void>
  /** Tells whether the database answers, without using the pool; for /health. */
  readonly reachable: boolean
  close(): Promise<void>
}
