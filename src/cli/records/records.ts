/** Memory and receipts, opened for a command; trouble with either ends the command with a sentence and the right code. */

import { type Memory, openMemory } from '../../memory/db.ts'
import { createQuestions } from '../../memory/questions.ts'
import { createRecorder, type RecorderOptions, RecordFailure, type RunRecorder } from '../../memory/recorder.ts'
import { atRest } from '../../receipts/last.ts'
import { latestReceipts } from '../../receipts/latest.ts'
import type { ReceiptPaths } from '../../receipts/log.ts'
import { createReceiptLog } from '../../receipts/log.ts'
import type { Questions } from '../../runtime/port.ts'
import type { SandboxKind } from '../../sandbox/port.ts'
import { CliExit, exitCodes } from '../exit.ts'
import { storageExit } from '../trouble.ts'
import type { Setup } from '../world.ts'

/** @throws CliExit: 9 for a corrupt file, 1 for what the file system refuses. */
export function openRecords({ config, log }: Pick<Setup, 'config' | 'log'>): Memory {
  const opened = openMemory({ path: config.memory.path, log, now: Date.now })
  if (opened.ok) return opened.memory
  throw storageExit(opened.failure)
}

/** SQLite trouble as a CliExit with the file's name; anything else as it is. */
export function inWords(memory: Memory, error: unknown): unknown {
  const failure = memory.failureOf(error)
  return failure ? storageExit(failure) : error
}

/** Runs `use` on the open memory and closes it; SQLite trouble becomes the same sentences. */
export async function withMemory<T>(setup: Pick<Setup, 'config' | 'log'>, use: (memory: Memory) => T | Promise<T>): Promise<T> {
  const memory = openRecords(setup)
  try {
    return await use(memory)
  } catch (error) {
    throw inWords(memory, error)
  } finally {
    memory.close()
  }
}

/** The log where the configuration puts it, its head and key beside it unless that is our home. */
export function receiptPaths({ config, paths }: Pick<Setup, 'config' | 'paths'>): ReceiptPaths {
  return { log: config.receipts.path, head: paths.receiptsHead, key: paths.receiptKey }
}

function receiptsAt(paths: ReceiptPaths): Pick<RecorderOptions, 'receipt' | 'atRest' | 'receiptsAfter'> {
  return {
    receipt: createReceiptLog({ paths }),
    atRest: (known) => atRest(paths, known),
    receiptsAfter: (count) => latestReceipts(paths, count),
  }
}

/** Approvals as the runtime asks for them: in the same database, so in the same transactions. */
export function questionsOf({ redactor }: Pick<Setup, 'redactor'>, { approvals }: Memory): Questions {
  return createQuestions(approvals, redactor.text)
}

/** The recorder of runs, after it put right what a crash left behind. @throws CliExit 9 when the receipts were altered. */
export function createRecord(
  setup: Pick<Setup, 'config' | 'paths' | 'log' | 'redactor'>,
  memory: Memory,
  { sandbox }: { readonly sandbox?: SandboxKind } = {},
): RunRecorder {
  const { config, log, redactor } = setup
  const recorder = createRecorder({
    memory,
    log,
    now: Date.now,
    redact: redactor.json,
    ...(sandbox === 'none' ? { sandbox } : {}),
    ...(config.receipts.enabled ? receiptsAt(receiptPaths(setup)) : {}),
  })
  try {
    const { interrupted, closedRuns, adopted, tornBytes } = recorder.recover()
    if (interrupted.length + closedRuns.length + adopted + tornBytes > 0)
      log('warn', 'recovered after a crash', { interrupted: interrupted.length, closedRuns: closedRuns.length, adopted, tornBytes })
    return recorder
  } catch (error) {
    if (!(error instanceof RecordFailure)) throw error
    throw new CliExit(error.integrity ? exitCodes.integrity : exitCodes.error, `error: ${error.message}`)
  }
}
