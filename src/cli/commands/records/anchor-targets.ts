/** Stores an anchor line in a file, in a note on the workspace's HEAD, or through the stdin of a command. */

import { closeSync, constants, fsyncSync, openSync, writeSync } from 'node:fs'
import { errorCode, explainErrno } from '../../../config/text/read-toml-file.ts'
import { CliExit, exitCodes } from '../../exit.ts'

export const notesRef = 'refs/notes/braidclaw'

/** Appends the line in one write and syncs it to disk before it returns; existing content stays. @throws CliExit 1 */
export function anchorToFile(path: string, line: string): void {
  try {
    const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK
    const file = openSync(path, flags, 0o600)
    try {
      const bytes = Buffer.from(`${line}\n`)
      if (writeSync(file, bytes) < bytes.length) throw new CliExit(exitCodes.error, `error: ${path}: the line did not fit; not anchored`)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
  } catch (error) {
    if (error instanceof CliExit) throw error
    throw new CliExit(exitCodes.error, `error: not anchored: ${path}: ${explainErrno(errorCode(error))}`)
  }
}

/** Keeps earlier notes on the same commit. It runs no hooks and filters of the repository. @throws CliExit 1 */
export async function anchorToGit(workspace: string, line: string): Promise<void> {
  const git = [
    'git',
    '-C',
    workspace,
    '-c',
    'core.hooksPath=/dev/null',
    '-c',
    'user.name=braidclaw',
    '-c',
    'user.email=braidclaw@localhost',
  ]
  await piped([...git, 'notes', `--ref=${notesRef}`, 'append', '-F', '-', 'HEAD'], line)
}

/**
 * Starts the command without a shell, with the line as stdin. Its error output appears in the error message. @throws CliExit 1 when it
 * fails
 */
export async function anchorToCommand(argv: readonly string[], line: string): Promise<void> {
  await piped(argv, line)
}

async function piped(argv: readonly string[], line: string): Promise<void> {
  const child = spawned(argv, line)
  const [said, code] = await Promise.all([child.stderr.text(), child.exited])
  if (code === 0) return
  const words = said.trim().split('\n').at(-1) ?? ''
  throw new CliExit(exitCodes.error, `error: not anchored: ${argv[0]} ended with ${child.signalCode ?? code}${words ? `: ${words}` : ''}`)
}

function spawned(argv: readonly string[], line: string) {
  try {
    return Bun.spawn([...argv], { stdin: new Blob([`${line}\n`]), stdout: 'ignore', stderr: 'pipe' })
  } catch (error) {
    throw new CliExit(exitCodes.error, `error: not anchored: ${argv[0]} cannot be started: ${explainErrno(errorCode(error))}`)
  }
}
