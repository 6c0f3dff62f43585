/** Defines the exit codes: stable, documented in "help all", one meaning each. */

import { errorCode, explainErrno } from '../config/text/read-toml-file.ts'
import { FailureError, storageProblem } from '../host/failure.ts'
import { causeOf } from '../kit/errors.ts'
import { storageFailure } from '../memory/storage-failure.ts'
import type { Ending } from '../runtime/event.ts'

export const exitCodes = {
  answered: 0,
  error: 1,
  usage: 2,
  denied: 3,
  approval_needed: 4,
  limit: 5,
  budget: 6,
  timeout: 7,
  provider: 8,
  integrity: 9,
  estop: 10,
  stalled: 1,
  checks_failed: 11,
  cancelled: 130,
} as const satisfies Record<Ending['code'] | 'usage', number>

export const exitCodeHelp: readonly (readonly [number, string])[] = [
  [0, 'answered, or done'],
  [1, 'error'],
  [2, 'usage: a flag, argument or command is wrong'],
  [3, 'denied: a tool was refused and the turn could not do what was asked'],
  [4, 'approval needed, but nobody to ask'],
  [5, 'limit reached (tool rounds, iterations)'],
  [6, 'budget spent (tokens, money)'],
  [7, 'timeout (the run, or the model)'],
  [8, 'provider failed'],
  [9, 'integrity: receipts, journal or session altered, or no receipt kept'],
  [10, 'stopped (estop)'],
  [11, 'checks failed: they do not pass, or could not be run'],
  [130, 'cancelled (Ctrl-C, SIGTERM)'],
]

/** Ends a command with this code; the message goes to stderr unless it is empty. */
export class CliExit extends Error {
  constructor(
    readonly code: number,
    message = '',
  ) {
    super(message)
  }
}

/** Ends a command that was called with wrong words. */
export function usageError(text: string): CliExit {
  return new CliExit(exitCodes.usage, `error: ${text}`)
}

/** Ends a command that failed. */
export function commandError(text: string): CliExit {
  return new CliExit(exitCodes.error, `error: ${text}`)
}

/** Converts whatever a command throws to a sentence and an exit code. Only bugs get a stack trace. */
export function exitOf(thrown: unknown): CliExit {
  const error = causeOf(thrown)
  if (error instanceof CliExit) return error
  if (error instanceof FailureError) return exitOfFailure(error)
  const storage = isSqlite(error) ? storageFailure('memory.path', error) : undefined
  if (storage) return exitOfFailure(storageProblem(storage))
  const path = pathOf(error)
  if (path !== undefined) return commandError(`${path}: ${explainErrno(errorCode(error))}`)
  const trace = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return commandError(`this is a bug in BraidClaw, please report it: ${trace}`)
}

function exitOfFailure({ code, problems }: FailureError): CliExit {
  return new CliExit(exitCodes[code], problems.map((problem) => `error: ${problem}`).join('\n'))
}

function isSqlite(error: unknown): boolean {
  return error instanceof Error && error.name === 'SQLiteError'
}

/** Returns the file of a system error; undefined for any other error. */
function pathOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('errno' in error) || !('syscall' in error)) return undefined
  return 'path' in error && typeof error.path === 'string' ? error.path : String(error.syscall)
}
