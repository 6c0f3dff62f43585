/** Marks, records and ends the processes of a worker's runs, also those that left their group and those that a killed worker left. */

import { mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { attempt } from '../../../kit/errors.ts'
import { replaceFile } from '../../../kit/files.ts'
import { namesIn, processesWith, startTick } from '../../../kit/proc.ts'
import { sha256 } from '../../../kit/sha256.ts'
import { endGroup } from '../../../service/supervise.ts'

/** Limits how long a child may run after SIGTERM, in ms, before SIGKILL. */
export const termGraceMs = 5_000
const ROUNDS = 20

/** Sends SIGKILL to each of these processes and to the group that it leads, if it is still the same process. */
export function killMarked(marks: readonly ProcessMark[]): number {
  return marks.filter((mark) => {
    if (!isAlive(mark)) return false
    endGroup(mark.pid, 'SIGKILL')
    return signal(mark.pid)
  }).length
}

/**
 * Kills every process that still has the token of the run in its environment, until none is left: a process may fork meanwhile.
 * @returns how many processes it ended
 */
export async function killLeftovers(tokenDigest: string): Promise<number> {
  const ended = new Set<number>()
  for (let round = 0; round < ROUNDS; round++) {
    const found = processesOfRun(tokenDigest)
    if (found.length === 0) break
    killMarked(found)
    for (const { pid } of found) ended.add(pid)
    await Bun.sleep(1 + round)
  }
  return ended.size
}

function signal(pid: number): boolean {
  return attempt(() => process.kill(pid, 'SIGKILL')) ?? false
}

/** Identifies a process; `started` counts ticks since the boot. */
export type ProcessMark = { readonly pid: number; readonly started: string }

/** @returns undefined for a process that does not exist, has ended or cannot be read */
export function markOf(pid: number): ProcessMark | undefined {
  const started = startTick(pid)
  return started === undefined ? undefined : { pid, started }
}

export function isAlive({ pid, started }: ProcessMark): boolean {
  return startTick(pid) === started
}

/** Finds the processes whose environment has the run token with this SHA-256, also those in other groups and sessions. */
export function processesOfRun(tokenDigest: string): readonly ProcessMark[] {
  const isOfRun = (variables: readonly string[]) => {
    const line = variables.find((each) => each.startsWith(variable))
    return line !== undefined && sha256(line.slice(variable.length)) === tokenDigest
  }
  return processesWith(isOfRun).flatMap((pid) => (pid === process.pid ? [] : (markOf(pid) ?? [])))
}

const variable = 'CONTROLPLANE_API_KEY='

const processMark = z.object({ pid: z.int(), started: z.string() })
const childRecord = z.object({
  run_id: z.string(),
  /** The worker that started it: while that worker lives, no other ends its child. */
  worker: processMark,
  token_digest: z.string(),
  processes: z.array(processMark),
})
type ChildRecord = z.infer<typeof childRecord>

export type ChildRecords = {
  /** Writes the record to the disk before it returns. Call it before the child runs its program. */
  write(record: Omit<ChildRecord, 'worker'>): void
  remove(runId: string): void
  /** Ends what dead workers left. @returns the runs whose processes it ended */
  clear(): Promise<readonly string[]>
}

/**
 * Remembers on disk which children a worker has, so that a worker that starts again ends exactly those that its killed predecessor left.
 * `folder` belongs to one agent of one worker machine; it is made when it is needed.
 */
export function openChildRecords(folder: string): ChildRecords {
  const pathOf = (runId: string) => join(folder, `${runId}.json`)
  const worker = markOf(process.pid) ?? { pid: process.pid, started: '' }
  return {
    write(record) {
      replaceFile(pathOf(record.run_id), JSON.stringify({ ...record, worker }))
    },
    remove: (runId) => rmSync(pathOf(runId), { force: true }),
    async clear() {
      const left = recordNames(folder).flatMap((name) => recordIn(join(folder, name)) ?? [])
      const ended: string[] = []
      for (const record of left) {
        if (isAlive(record.worker)) continue
        const killed = killMarked(record.processes) + (await killLeftovers(record.token_digest))
        if (killed > 0) ended.push(record.run_id)
        rmSync(pathOf(record.run_id), { force: true })
      }
      return ended
    },
  }
}

/** Moves the records of workers that have died; the others still need theirs where they are. */
export function moveRecords(from: string, to: string): void {
  for (const name of recordNames(from)) {
    const record = recordIn(join(from, name))
    if (record === undefined || isAlive(record.worker)) continue
    mkdirSync(to, { recursive: true, mode: 0o700 })
    renameSync(join(from, name), join(to, name))
  }
}

function recordNames(folder: string): readonly string[] {
  return namesIn(folder).filter((name) => name.endsWith('.json'))
}

/** Reads a record. A file that a crash left half written is removed: its child had not started. */
function recordIn(path: string): ChildRecord | undefined {
  const record = childRecord.safeParse(jsonAt(path)).data
  if (!record) rmSync(path, { force: true })
  return record
}

/** @returns undefined when the file cannot be read or is not JSON */
export function jsonAt(path: string): unknown {
  return attempt(() => JSON.parse(readFileSync(path, 'utf8')))
}

/** The guard reads from a pipe that only the worker holds, so the pipe ends when the worker dies. */
const guardScript = 'read -r _ || kill -KILL "$@"'

/**
 * Ends a child when the worker dies. Bubblewrap's --die-with-parent alone is too late for a worker that dies in the first moments of its child:
 * the first process of the namespace asks the kernel for that signal only after the program runs.
 * @param targets process numbers, and process groups as numbers below zero
 */
export function startGuard(targets: readonly number[]): { stop(): void } {
  const guard = Bun.spawn(['/bin/sh', '-c', guardScript, 'sh', ...targets.map(String)], {
    env: {},
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  guard.unref()
  return { stop: () => guard.kill('SIGKILL') }
}
