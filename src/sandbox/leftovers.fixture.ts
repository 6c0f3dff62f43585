/** Starts, for the tests, what a killed BraidClaw leaves behind: a bubblewrap that waits at a gate, and programs that look like one. */

import { mkdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { createGate, gateArgument } from './bubblewrap/warm-sandbox.ts'
import { markOption, sandboxMark } from './private-folder.ts'
import { fixedPath } from './trial-key.ts'

/** The number of our own PID namespace. */
export function namespace(): string {
  return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? ''
}

/** The name of a sandbox folder whose owner has ended. */
export function deadFolder(): string {
  return `sandbox-${namespace()}-999999999-1-Abc123`
}

/** Returns whether the process runs; a zombie does not. */
export function runs(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

export async function until(holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 3_000 && !holds(); tries++) await Bun.sleep(10)
}

export type Others = Disposable & { readonly pids: readonly number[] }

export function spawned(...argv: string[]): Others {
  const stdio: ['ignore', 'ignore', 'ignore', 'ignore', 'ignore', 'ignore', 'pipe'] = [
    'ignore',
    'ignore',
    'ignore',
    'ignore',
    'ignore',
    'ignore',
    'pipe',
  ]
  const child = Bun.spawn(argv, { env: { PATH: fixedPath }, stdio, detached: true })
  return others([child.pid], () => process.kill(-child.pid, 'SIGKILL'))
}

function others(pids: readonly number[], end: () => void): Others {
  return { pids, [Symbol.dispose]: () => void (pids.some(runs) && end()) }
}

/** Starts bubblewrap as the sandbox does, with the gate in this folder and its mark: it waits as long as the test keeps its descriptor open. */
export async function waitingAt(folder: string, through: readonly string[] = []): Promise<Others> {
  const gate = createGate({ folder: realpathSync(folder), cover: (at) => ['--tmpfs', at], sealed: true })
  const links = ['bin', 'lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`])
  const walls = ['--unshare-user', '--unshare-pid', '--ro-bind', '/usr', '/usr', ...links]
  const { pids } = spawned(...through, 'bwrap', markOption, sandboxMark(folder), ...walls, ...gate.arguments, '--', '/bin/sleep', '60')
  const [outer = 0] = pids
  // bubblewrap waits as soon as the gate is mounted.
  await until(() => childrenOf(outer).some((inner) => readFileSync(`/proc/${inner}/mountinfo`, 'utf8').includes(gateArgument.at)))
  return others([outer, ...childrenOf(outer)], () => process.kill(-outer, 'SIGKILL'))
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return text === '' ? [] : text.split(' ').map(Number)
}

export function commandOf(pid = 0): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
}

export function folderIn(state: string, name: string): string {
  const folder = join(state, 'run', name)
  mkdirSync(folder, { recursive: true })
  return folder
}
