/** Keeps a waiting sandbox from going on when we die: the end of our process closes its descriptor, which looks like "go". */

import { mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import type { Cover } from './empty-mount.ts'
import { descriptors } from './run-confined.ts'

export type Gate = {
  /** bubblewrap's arguments: wait, then stop with an error unless the gate is open. */
  readonly arguments: readonly string[]
  /** For the time of a command. */
  open(): void
  shut(): void
}

/** How the gate of a sandbox shows in its command line: `--ro-bind …/gate /.gate`. */
export const gateArgument = { option: '--ro-bind', name: 'gate', at: '/.gate' } as const

/**
 * The gate is open while a folder stands in a read-only mount: bubblewrap mounts on it, and cannot make it. Without that it would go on to
 * the protected names, and make those that have no place holder, for good.
 */
export function createGate({ folder, cover, sealed }: { readonly folder: string; readonly cover: Cover; readonly sealed: boolean }): Gate {
  const { option, name, at } = gateArgument
  const gate = join(folder, name)
  const [closed, opened] = [join(gate, 'shut'), join(gate, 'open')]
  mkdirSync(closed, { recursive: true })
  let commands = 0
  return {
    arguments: sealed
      ? [option, gate, at, '--file', descriptors.go, '/.go', ...cover(`${at}/open`), ...cover(at)]
      : ['--file', descriptors.go, join(folder, 'go')],
    open() {
      if (++commands === 1) renameSync(closed, opened)
    },
    shut() {
      if (--commands === 0) renameSync(opened, closed)
    },
  }
}
