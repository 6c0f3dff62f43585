/** Builds the environment of the daemon and its bridges: the process environment, completed from a file of assignments. */

import { join } from 'node:path'
import type { CliContext } from '../channels/terminal/context.ts'
import { readAssignments } from '../config/text/assignments.ts'
import { readConfigFile } from '../config/text/read-toml-file.ts'
import { createContext } from './context.ts'
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
