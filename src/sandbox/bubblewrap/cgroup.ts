/** Creates a control group for the processes of one sandbox where the user may create one: no other limit counts all processes together. */

import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { succeeds } from '../../kit/errors.ts'
import { namesIn, textIn } from '../../kit/proc.ts'
import type { Limits } from '../contract.ts'

/** A process that writes "0" to each file of `join` enters the group, together with every process that it starts. */
export type Group = { readonly join: readonly string[]; readonly words: string; remove(): Promise<void> }

type GroupPlace = { readonly folder: string; readonly join: string; readonly files: readonly (readonly [string, number])[] }

/** The shell and bubblewrap's two processes. */
const OURS = 3
const PREFIX = 'braidclaw-'
const TRIES = 50
const SLACK = 64 * 2 ** 20

/**
 * @returns undefined when we may not create a group in any hierarchy. A partial group (processes without memory) is better than no group.
 */
export function createGroup({ limits, root = '/sys/fs/cgroup' }: { readonly limits: Limits; readonly root?: string }): Group | undefined {
  const made = places({ limits, root }).filter(make)
  if (made.length === 0) return undefined
  return {
    join: made.map(({ folder, join: file }) => join(folder, file)),
    words: made.flatMap(({ files }) => files.map(([name, value]) => `${name} ${value}`)).join(', '),
    remove: async () => {
      for (const { folder } of made) for (let tries = 0; tries < TRIES && !remove(folder); tries++) await Bun.sleep(2)
    },
  }
}

/** Uses version 2 where that hierarchy has the controllers, otherwise the separate hierarchies of version 1. */
function places({ limits, root }: { readonly limits: Limits; readonly root: string }): GroupPlace[] {
  const name = `${PREFIX}${process.pid}-${crypto.randomUUID().slice(0, 8)}`
  const own = ownGroups()
  const processes = limits.processes + OURS
  const totalMemory = groupMemory(limits)
  if (existsSync(join(root, 'cgroup.controllers'))) {
    const files = [['pids.max', processes] as const, ['memory.max', totalMemory] as const]
    const parent = [own.get('') ?? '/', '/'].map((path) => join(root, path)).find(enable)
    return parent === undefined ? [] : [{ folder: join(parent, name), join: 'cgroup.procs', files }]
  }
  return [
    { controller: 'pids', files: [['pids.max', processes] as const] },
    { controller: 'memory', files: [['memory.limit_in_bytes', totalMemory] as const] },
  ].flatMap(({ controller, files }) => {
    const parent = join(root, controller, own.get(controller) ?? '/')
    return existsSync(parent) ? [{ folder: join(parent, name), join: 'tasks', files }] : []
  })
}

/**
 * Returns a limit above that of the watcher (process-limits.ts), which reports why it ended a command; the kernel ends single processes of a
 * command that is quicker than the watcher.
 */
export function groupMemory({ memoryBytes, totalMemoryBytes = memoryBytes }: Limits): number {
  return Math.floor(totalMemoryBytes * 1.5) + SLACK
}

/** Maps a controller to its path; version 2 has the empty name. */
function ownGroups(): ReadonlyMap<string, string> {
  const lines = textIn('/proc/self/cgroup').trim().split('\n')
  return new Map(
    lines.flatMap((line) => {
      const [, controllers = '', path = '/'] = /^\d+:([^:]*):(.*)$/.exec(line) ?? []
      return controllers.split(',').map((controller): [string, string] => [controller, path])
    }),
  )
}

/** A group that has its own processes cannot delegate controllers; then we try the next candidate. */
function enable(folder: string): boolean {
  const has = () => ['pids', 'memory'].every((name) => textIn(join(folder, 'cgroup.subtree_control')).split(/\s+/).includes(name))
  if (has()) return true
  write(join(folder, 'cgroup.subtree_control'), '+pids +memory')
  return has()
}

function make({ folder, files }: GroupPlace): boolean {
  sweep(join(folder, '..'))
  if (!succeeds(() => mkdirSync(folder))) return false
  if (files.every(([name, value]) => write(join(folder, name), String(value)))) return true
  remove(folder)
  return false
}

/** Removes the groups of processes that were killed. The kernel refuses to remove a group that is still in use. */
function sweep(parent: string): void {
  for (const name of namesIn(parent)) {
    const pid = name.startsWith(PREFIX) ? Number(name.slice(PREFIX.length).split('-')[0]) : process.pid
    if (!existsSync(`/proc/${pid}`)) remove(join(parent, name))
  }
}

/** Returns false while a process of the group is still ending; the next sweep removes such a group. */
function remove(folder: string): boolean {
  return succeeds(() => rmdirSync(folder)) || !existsSync(folder)
}

function write(path: string, value: string): boolean {
  return succeeds(() => writeFileSync(path, value))
}
