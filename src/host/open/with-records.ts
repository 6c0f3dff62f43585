/** Opens the records of a home for one command. */

import type { Setup } from '../api.ts'
import { createRecord } from '../records/integrity/recovery.ts'
import type { RecordsBase } from '../records/records-base.ts'
import { withMemory } from './open-records.ts'

/** Closes them when `use` has ended. @throws FailureError when they cannot be used */
export function withRecords<T>(setup: Setup, use: (base: RecordsBase) => T | Promise<T>): Promise<T> {
  return withMemory(setup, (memory) => use({ setup, memory, record: createRecord({ ...setup, redact: setup.redactor.json }, memory) }))
}
