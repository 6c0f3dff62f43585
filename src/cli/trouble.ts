/** Converts whatever a command throws to a sentence and an exit code. Only bugs get a stack trace. */

import { errorCode, explainErrno } from '../config/text/read-toml-file.ts'
import { FailureError, storageProblem } from '../host/failure.ts'
import { storageFailure } from '../memory/storage-failure.ts'
import { CliExit, exitCodes } from './exit.ts'

export function exitOf(error: unknown): CliExit {
  if (error instanceof CliExit) return error
  if (error instanceof FailureError) return exitOfFailure(error)
  const storage = isSqlite(error) ? storageFailure('memory.path', error) : undefined
  if (storage) return exitOfFailure(storageProblem(storage))
  const path = pathOf(error)
  if (path !== undefined) return new CliExit(exitCodes.error, `error: ${path}: ${explainErrno(errorCode(error))}`)
  const trace = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return new CliExit(exitCodes.error, `error: this is a bug in BraidClaw, please report it: ${trace}`)
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
