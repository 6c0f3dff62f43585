/** Runs the person's editor on the terminal and waits for its end; Ctrl-C belongs to the editor meanwhile. */

import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import type { Environment } from '../../../host/api.ts'

export type Editing = {
  readonly files: readonly string[]
  /** VISUAL or EDITOR names the editor, as a command line of the shell. */
  readonly env: Environment
  /** The terminal; absent: the one on stdin. */
  readonly fd?: number
}

/** @returns the exit code; undefined when it could not be started or was killed by a signal */
export function runEditor({ files, env, fd: given }: Editing): Promise<number | undefined> {
  // Bun refuses descriptor 0 in another place than the first.
  const own = given || openSync('/proc/self/fd/0', 'r+')
  const command = env.VISUAL || env.EDITOR || 'vi'
  const release = holdInterrupts()
  return new Promise<number | undefined>((resolve) => {
    const child = spawn('/bin/sh', ['-c', `${command} "$@"`, 'editor', ...files], { stdio: [own, own, own], env: { ...env } })
    child.once('error', () => resolve(undefined))
    child.once('exit', (code) => resolve(code ?? undefined))
  }).finally(() => {
    release()
    if (own !== given) closeSync(own)
  })
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
