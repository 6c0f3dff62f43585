/** Holds a network namespace with nothing but a loopback interface, which the commands of one conversation share. */

import type { Loopback } from '../confinement.ts'
import { fixedPath } from '../install.ts'
import { insideUser } from './namespaces.ts'

type Holding = {
  /** Path of bubblewrap. */
  readonly program: string
  /** Words that mark the process as ours, see sandbox-mark.ts. */
  readonly mark: readonly string[]
}

/**
 * The process that holds the namespace runs nothing but a shell that waits, outside the PID namespaces of the commands. It ends with our
 * process: bubblewrap sees to it, and its input then ends. @returns why there can be none, as the end of a sentence
 */
export async function openLoopback({ program, mark }: Holding): Promise<Loopback | string> {
  const nsenter = Bun.which('nsenter', { PATH: fixedPath })
  if (nsenter === null) return 'nsenter of util-linux is not installed'
  const { uid, gid } = insideUser()
  // bubblewrap brings the loopback interface up; unshare does not.
  const namespaces = ['--unshare-user', '--uid', String(uid), '--gid', String(gid), '--unshare-net', '--cap-drop', 'ALL']
  const argv = [program, ...mark, ...namespaces, '--new-session', '--die-with-parent', '--ro-bind', '/', '/', '--', '/bin/sh', '-c']
  const child = Bun.spawn([...argv, 'echo $$; read line'], { cwd: '/', env: {}, stdio: ['pipe', 'pipe', 'ignore'] })
  child.unref()
  const close = () => child.kill('SIGKILL')
  const pid = await firstLine(child.stdout)
  const words = [nsenter, '-t', pid, '-U', '-n', '--preserve-credentials', '--']
  if (/^\d+$/.test(pid) && (await Bun.spawn([...words, '/bin/true'], { stdio: ['ignore', 'ignore', 'ignore'] }).exited) === 0)
    return { key: `loopback ${pid}`, words, isOpen: () => child.exitCode === null && child.signalCode === null, close }
  close()
  return 'the system does not let commands share a network namespace'
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  const reader = stream.getReader()
  let text = ''
  while (!text.includes('\n')) {
    const { value } = await reader.read()
    if (value === undefined) break
    text += Buffer.from(value).toString('latin1')
  }
  void reader.cancel().catch(() => {})
  return text.trim()
}
