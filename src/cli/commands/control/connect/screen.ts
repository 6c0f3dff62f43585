/**
 * Prints what a command of the control plane found: JSON for programs, lines as wide as the terminal for people; a new secret once, or into a file
 * that only its owner can read.
 */

import { lstatSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { CliContext } from '../../../../channels/terminal/context.ts'
import { columnsOfStderr, isTerminal } from '../../../../channels/terminal/tty.ts'
import { errorCode, explainErrno } from '../../../../config/text/read-toml-file.ts'
import type { NewAgentKey } from '../../../../control/contract/fleet-shapes.ts'
import type { Flags } from '../../../args/command.ts'
import { CliExit, commandError } from '../../../exit.ts'

/** Returns undefined when stdout is not a terminal, because then nothing may be cut. */
export function terminalWidth(): number | undefined {
  return isTerminal(1) ? Math.max(40, columnsOfStderr()) : undefined
}

type CommandOutput = { readonly json: boolean; readonly value: unknown; readonly text: string }

/** Writes `text` as it is, with its newlines. */
export function show({ process: { stdout } }: CliContext, { json, value, text }: CommandOutput): void {
  stdout.write(json ? `${JSON.stringify(value)}\n` : text)
}

/** Writes the id, which scripts read, to stdout, and the sentence about it to stderr. */
export function showId({ process: { stdout, stderr } }: CliContext, shown: CommandOutput & { readonly id: string }): void {
  if (shown.json) return void stdout.write(`${JSON.stringify(shown.value)}\n`)
  stdout.write(`${shown.id}\n`)
  stderr.write(shown.text)
}

export const keyFlags = { to: { type: 'text', about: 'A file for the secret (mode 600), instead of stdout' } } as const satisfies Flags

type NewSecret = {
  readonly secret: string
  readonly name: string
  readonly value: object
  readonly json: boolean
  readonly to: string | undefined
}

export function showKey(
  context: CliContext,
  { key, json, to }: { readonly key: NewAgentKey; readonly json: boolean; readonly to: string | undefined },
): void {
  showSecret(context, { secret: key.key, name: `key ${key.key_id} of ${key.agent_id}`, value: key, json, to })
}

/** With `to`, the JSON has no secret either. @throws CliExit 1 when the file cannot be written */
export function showSecret(context: CliContext, { secret, name, value, json, to }: NewSecret): void {
  const { stdout, stderr } = context.process
  if (to !== undefined) {
    const path = resolve(context.cwd, to)
    writeSecret(path, secret)
    const known = Object.fromEntries(Object.entries(value).filter(([, each]) => each !== secret))
    return void stdout.write(json ? `${JSON.stringify({ ...known, file: path })}\n` : `${name}: ${path}\n`)
  }
  if (json) return void stdout.write(`${JSON.stringify(value)}\n`)
  stderr.write(`${name}: it is not shown again\n`)
  stdout.write(`${secret}\n`)
}

/**
 * Replaces the file by a new one: an existing file may belong to another user, or be open elsewhere, and would show the secret.
 * @throws CliExit 1
 */
export function writeSecret(path: string, secret: string): void {
  const draft = `${path}.${crypto.randomUUID()}.tmp`
  try {
    if (lstatSync(path, { throwIfNoEntry: false })?.isFile() === false) throw unwritten(path, 'it is not a regular file')
    writeFileSync(draft, `${secret}\n`, { mode: 0o600, flag: 'wx', flush: true })
    renameSync(draft, path)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error instanceof CliExit ? error : unwritten(path, explainErrno(errorCode(error)))
  }
}

function unwritten(path: string, why: string): CliExit {
  return commandError(`the secret cannot be written to ${path}: ${why}; it was made: revoke it, or rotate it to get another one`)
}
