/** Sends what a command says to a log file, for a server that nobody watches. */

import { resolve } from 'node:path'
import type { CliContext } from '../channels/terminal/context.ts'
import { printTo } from '../channels/terminal/printer.ts'
import { errorCode, explainErrno } from '../config/text/read-toml-file.ts'
import { openRotatingLog, type RotatingLog } from '../service/rotating-log.ts'
import { messages } from './context.ts'
import { commandError } from './exit.ts'

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
