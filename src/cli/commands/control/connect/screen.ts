/** Says how wide the lines of a list may be, and prints a new secret once, or into a file that only its owner can read. */

import { lstatSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { CliContext } from '../../../../channels/terminal/context.ts'
import { columnsOfStderr, isTerminal } from '../../../../channels/terminal/tty.ts'
import { errorCode, explainErrno } from '../../../../config/text/read-toml-file.ts'
import type { NewAgentKey } from '../../../../control/contract/fleet-shapes.ts'
import type { Flags } from '../../../args/command.ts'
import { CliExit, commandError } from '../../../exit.ts'
import { printOne } from '../../../print-list.ts'

/** Returns undefined when stdout is not a terminal, because then nothing may be cut. */
export function terminalWidth(): number | undefined {
  return isTerminal(1) ? Math.max(40, columnsOfStderr()) : undefined
}

export const keyFlags = { to: { type: 'text', about: 'A file for the secret (mode 600), instead of stdout' } } as const satisfies Flags

export type NewSecret = {
  readonly secret: string
  readonly name: string
  readonly value: object
  readonly json: boolean
  readonly to?: string | undefined
}

export function showKey(
  context: CliContext,
  { key, json, to }: { readonly key: NewAgentKey; readonly json: boolean; readonly to: string | undefined },
): void {
  showSecret(context, { secret: key.key, name: `key ${key.key_id} of ${key.agent_id}`, value: key, json, to })
}

/** With `to`, the JSON has no secret either. @throws CliExit 1 when the file cannot be written */
export function showSecret(context: CliContext, { secret, name, value, json, to }: NewSecret): void {
  if (to === undefined) {
    if (!json) context.process.stderr.write(`${name}: it is not shown again\n`)
    printOne(context, { json, value, text: `${secret}\n` })
    return
  }
  const path = resolve(context.cwd, to)
  writeSecret(path, secret)
  const known = Object.fromEntries(Object.entries(value).filter(([, each]) => each !== secret))
  printOne(context, { json, value: { ...known, file: path }, text: `${name}: ${path}\n` })
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
