/** Keeps the copies of tasks that wait for somebody, on disk: a worker that starts later goes on with them. */

import { readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { Manifest } from '../../../host/changes/attempts/workspace-copy.ts'
import { removeTree } from '../../../workspace/changes/tree/remove-tree.ts'
import type { Task } from '../../contract/task-shapes.ts'
import type { LookAtTask } from '../worker-options.ts'

const parkedCopy = z.object({
  task_id: z.string(),
  /** Of the run that waits: only the run after it goes on with its copy. */
  attempt: z.int(),
  workspace: z.string(),
  /** Where the copy lay, for sessions that remember paths. */
  base: z.string(),
  runner: z.string(),
  session: z.optional(z.string()),
})
export type ParkedCopy = z.infer<typeof parkedCopy>

const kinds = ['file', 'folder', 'link', 'other'] as const
const entries = z.array(z.tuple([z.string(), z.enum(kinds), z.int(), z.number(), z.string(), z.string()]))

const most = 8
const prefix = 'waiting-'
const placeOf = (folder: string, taskId: string) => join(folder, `${prefix}${taskId}`)
const aboutIn = (place: string) => join(place, 'parked.json')
const manifestIn = (place: string) => join(place, 'before.json')

/** Moves the copy at `base` aside. The oldest one goes when there are too many: its task then begins anew. @throws the system's error */
export async function parkCopy(folder: string, parked: ParkedCopy, before: Manifest): Promise<void> {
  const place = placeOf(folder, parked.task_id)
  const listed = [...before].map(([raw, { kind, mode, size, inode, changed }]) => [raw, kind, mode, size, inode, changed] as const)
  writeFileSync(manifestIn(parked.base), JSON.stringify(listed), { mode: 0o600 })
  writeFileSync(aboutIn(parked.base), JSON.stringify(parked), { mode: 0o600 })
  for (const other of oldest(placesIn(folder).filter((each) => each !== place))) await removeTree(other)
  await removeTree(place)
  renameSync(parked.base, place)
}

type Wanted = Pick<ParkedCopy, 'task_id' | 'attempt' | 'workspace'>

/** Moves the copy of this task to `base`, which does not exist. @returns undefined when there is none with which this run can go on */
export async function unparkCopy(
  folder: string,
  base: string,
  wanted: Wanted,
): Promise<{ parked: ParkedCopy; before: Manifest } | undefined> {
  try {
    renameSync(placeOf(folder, wanted.task_id), base)
  } catch {
    return undefined
  }
  const [parked, before] = [parkedAt(base), manifestAt(base)]
  if (parked && before && parked.attempt + 1 === wanted.attempt && parked.workspace === wanted.workspace) return { parked, before }
  await removeTree(base)
  return undefined
}

/** Removes the copies of tasks that have ended, or that another run has had since. @throws what `look` throws */
export async function tidyParked(folder: string, look: LookAtTask): Promise<void> {
  for (const place of placesIn(folder)) {
    const parked = parkedAt(place)
    const task = parked && (await look(parked.task_id))
    if (!parked || !task || isOver(task, parked)) await removeTree(place).catch(() => undefined)
  }
}

function isOver({ status, attempt }: Pick<Task, 'status' | 'attempt'>, parked: ParkedCopy): boolean {
  return ['completed', 'failed', 'dead', 'cancelled'].includes(status) || attempt > parked.attempt + 1
}

function oldest(places: readonly string[]): readonly string[] {
  const age = (place: string) => statSync(aboutIn(place), { throwIfNoEntry: false })?.mtimeMs ?? 0
  return places.toSorted((a, b) => age(a) - age(b)).slice(0, Math.max(0, places.length - most + 1))
}

function parkedAt(place: string): ParkedCopy | undefined {
  return parkedCopy.safeParse(jsonAt(aboutIn(place))).data
}

function manifestAt(place: string): Manifest | undefined {
  const { data } = entries.safeParse(jsonAt(manifestIn(place)))
  return data && new Map(data.map(([raw, kind, mode, size, inode, changed]) => [raw, { kind, mode, size, inode, changed }]))
}

function jsonAt(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  }
}

function placesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).flatMap((name) => (name.startsWith(prefix) ? [join(folder, name)] : []))
  } catch {
    return []
  }
}
