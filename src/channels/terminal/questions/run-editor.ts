/** Runs the person's editor on the terminal and waits for its end; Ctrl-C belongs to the editor meanwhile. */

import { type StdioOptions, spawn } from 'node:child_process'
import type { Environment } from '../../../host/api.ts'
import { openTerminal } from '../tty.ts'

export type Editing = {
  readonly files: readonly string[]
  /** VISUAL or EDITOR names the editor, as a command line of the shell. */
  readonly env: Environment
  /** The terminal; absent: the one that this process has. */
  readonly fd?: number
}

/** @returns the exit code; undefined when it could not be started or was killed by a signal */
export function runEditor({ files, env, fd = openTerminal() ?? 0 }: Editing): Promise<number | undefined> {
  const command = env.VISUAL || env.EDITOR || 'vi'
  const release = holdInterrupts()
  return new Promise<number | undefined>((resolve) => {
    const child = spawn('/bin/sh', ['-c', `${command} "$@"`, 'editor', ...files], { stdio: stdioOf(fd), env: { ...env } })
    child.once('error', () => resolve(undefined))
    child.once('exit', (code) => resolve(code ?? undefined))
  }).finally(release)
}

/** Bun refuses descriptor 0 in another place than the first. */
function stdioOf(fd: number): StdioOptions {
  return fd === 0 ? 'inherit' : [fd, fd, fd]
}

/** The terminal sends Ctrl-C to both programs; ours must not take it for a cancellation. */
function holdInterrupts(): () => void {
  const listeners = process.listeners('SIGINT')
  const ignore = () => {}
  process.removeAllListeners('SIGINT')
  process.on('SIGINT', ignore)
  return () => {
    process.off('SIGINT', ignore)
    for (const listener of listeners) process.on('SIGINT', listener)
  }
}
