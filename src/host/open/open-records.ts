/** Opens the database: for the host, and for commands that only read or repair records. No other module opens it. */

import { type Memory, openMemory } from '../../memory/memory.ts'
import { createSealer } from '../../receipts/key.ts'
import type { Setup } from '../api.ts'
import { FailureError, storageProblem } from '../failure.ts'
import { createRecord, receiptPaths } from '../records/integrity/create-record.ts'
import type { RecordsBase } from '../records/records-base.ts'

type OpenedSetup = Pick<Setup, 'config' | 'paths' | 'log'>

/** @throws FailureError `integrity` for a corrupt file, `error` for what the file system refuses. */
export function openRecords({ config, paths, log }: OpenedSetup): Memory {
  const opened = openMemory({ path: config.memory.path, log, now: Date.now, seal: createSealer(receiptPaths({ config, paths })) })
  if (opened.ok) return opened.memory
  throw storageProblem(opened.failure)
}

/** Runs `use` on the open memory and closes it; SQLite errors become the same sentences. */
export async function withMemory<T>(setup: OpenedSetup, use: (memory: Memory) => T | Promise<T>): Promise<T> {
  const memory = openRecords(setup)
  try {
    return await use(memory)
  } catch (error) {
    throw toFailure(memory, error)
  } finally {
    memory.close()
  }
}

/** Creates a database where none exists. @throws FailureError as openRecords */
export function createDatabase(path: string): void {
  const opened = openMemory({ path, log: () => {}, now: Date.now })
  if (!opened.ok) throw new FailureError('error', opened.failure.message)
  opened.memory.close()
}

/** Converts a SQLite error to a FailureError with the file name; returns any other error unchanged. */
export function toFailure(memory: Memory, error: unknown): unknown {
  const failure = memory.failureOf(error)
  return failure ? storageProblem(failure) : error
}

/** Opens the records of a home for one command, and closes them when `use` has ended. @throws FailureError when they cannot be used */
export function withRecords<T>(setup: Setup, use: (base: RecordsBase) => T | Promise<T>): Promise<T> {
  return withMemory(setup, async (memory) => {
    const record = createRecord({ ...setup, redact: setup.redactor.json }, memory)
    await record.prepare()
    return use({ setup, memory, record })
  })
}
