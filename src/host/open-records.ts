/** The database, opened: by the host for all who talk, and for a command that only reads or settles records. Nobody else opens it. */

import { type Memory, openMemory } from '../memory/memory.ts'
import type { Setup } from './api.ts'
import { FailureError, storageProblem } from './failure.ts'

/** @throws FailureError: integrity for a corrupt file, error for what the file system refuses. */
export function openRecords({ config, log }: Pick<Setup, 'config' | 'log'>): Memory {
  const opened = openMemory({ path: config.memory.path, log, now: Date.now })
  if (opened.ok) return opened.memory
  throw storageProblem(opened.failure)
}

/** Runs `use` on the open memory and closes it; SQLite trouble becomes the same sentences. */
export async function withMemory<T>(setup: Pick<Setup, 'config' | 'log'>, use: (memory: Memory) => T | Promise<T>): Promise<T> {
  const memory = openRecords(setup)
  try {
    return await use(memory)
  } catch (error) {
    throw toFailure(memory, error)
  } finally {
    memory.close()
  }
}

/** Where there is none yet. @throws FailureError as openRecords */
export function createDatabase(path: string): void {
  const opened = openMemory({ path, log: () => {}, now: Date.now })
  if (!opened.ok) throw new FailureError('error', opened.failure.message)
  opened.memory.close()
}

/** SQLite trouble as a FailureError with the file's name; anything else as it is. */
export function toFailure(memory: Memory, error: unknown): unknown {
  const failure = memory.failureOf(error)
  return failure ? storageProblem(failure) : error
}
