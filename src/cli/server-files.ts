/** Reads the environment file of a server, and sends what it says to a log file that nobody watches. */

import { join, resolve } from 'node:path'
import type { CliContext } from '../channels/terminal/context.ts'
import { printTo } from '../channels/terminal/printer.ts'
import { readAssignments } from '../config/text/assignments.ts'
import { errorCode, explainErrno, readConfigFile } from '../config/text/read-toml-file.ts'
import { openRotatingLog, type RotatingLog } from '../service/rotating-log.ts'
import { createContext, messages } from './context.ts'
import { CliExit, commandError, exitCodes } from './exit.ts'

/**
 * Reads `named`, or config.env in the home when it exists; it never executes the file. A variable that is already set stays unchanged.
 * @throws CliExit 1 when the file cannot be read, or with every line that is not an assignment
 */
export function withEnvFile(context: CliContext, named?: string): CliContext {
  const path = named === undefined ? join(context.home, 'config.env') : join(named.startsWith('/') ? '' : context.cwd, named)
  const read = readConfigFile(path)
  if (read.state === 'missing' && named === undefined) return context
  if (read.state === 'missing') throw commandError(`--env-file ${named}: the file does not exist`)
  if (read.state === 'unusable') throw commandError(`${path} ${read.why}`)
  const { assignments, odd } = readAssignments(read.text)
  if (odd.length > 0) throw new CliExit(exitCodes.error, odd.map(({ line, why }) => `error: ${path}:${line}: ${why}`).join('\n'))
  const said = Object.fromEntries(assignments.map(({ name, value }) => [name, value]))
  const { cwd, outputClosed, outputFailure } = context
  const fresh = createContext({ ...said, ...context.env })
  // The new stderr redacts the keys from the file.
  return { ...fresh, cwd, outputClosed, outputFailure, process: { ...context.process, stderr: fresh.process.stderr } }
}

/** Runs `work` with the environment of `envFile`, and with its messages in `logFile`. @throws CliExit 1 as both functions do */
export function withServerFiles(
  context: CliContext,
  { envFile, logFile }: { readonly envFile?: string; readonly logFile?: string },
  work: (context: CliContext) => Promise<void>,
): Promise<void> {
  return withLogFile(withEnvFile(context, envFile), logFile, work)
}

/** Runs `work` with a context whose messages go to `path`; without a path they stay where they are. @throws CliExit 1 when it cannot be written */
export async function withLogFile(
  context: CliContext,
  path: string | undefined,
  work: (context: CliContext) => Promise<void>,
): Promise<void> {
  if (path === undefined) return work(context)
  const log = opened(resolve(context.cwd, path))
  const put = (text: string) => log.write(dated(text))
  const stderr = messages(context.env, context.redactor, printTo(put, false))
  try {
    await work({ ...context, say: stderr.write, process: { ...context.process, stderr } })
  } catch (error) {
    // The terminal shows the error too, but the log must be complete without it.
    stderr.write(`${context.explain(error)}\n`)
    throw error
  } finally {
    log.close()
  }
}

function opened(path: string): RotatingLog {
  try {
    return openRotatingLog({ path })
  } catch (error) {
    throw commandError(`--log-file "${path}" cannot be written: ${explainErrno(errorCode(error))}`)
  }
}

/** Puts the time before each line; a JSON line has it already. */
function dated(text: string): string {
  const now = new Date().toISOString()
  return text.replace(/^(?!\{"ts":|$)/gm, `${now} `)
}
