/** Keeps a waiting sandbox from continuing when our process ends: the kernel then closes our descriptor, which looks like "go". */

import { mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import type { Cover } from './empty-mount.ts'
import { descriptors } from './run-confined.ts'

export type Gate = {
  /** bubblewrap's arguments: wait, then fail unless the gate is open. */
  readonly arguments: readonly string[]
  /** Opens the gate while a command runs. */
  open(): void
  shut(): void
}

/** The gate in the command line of a sandbox: `--ro-bind …/gate /.gate`. */
export const gateArgument = { option: '--ro-bind', name: 'gate', at: '/.gate' } as const

/**
 * The gate is open while a folder exists in a read-only mount: bubblewrap mounts on that folder and cannot create it. Without the gate,
 * bubblewrap would continue to the protected names and permanently create those that have no place holder.
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
