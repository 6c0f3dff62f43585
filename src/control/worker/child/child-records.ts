/** Remembers on disk which children a worker has, so that a worker that starts again ends exactly those that its killed predecessor left. */

import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { isAlive, killLeftovers, killMarked, markOf } from './end-processes.ts'

const processMark = z.object({ pid: z.int(), started: z.string() })
const childRecord = z.object({
  run_id: z.string(),
  /** The worker that started it: while that one lives, nobody else ends its child. */
  worker: processMark,
  token_digest: z.string(),
  processes: z.array(processMark),
})
export type ChildRecord = z.infer<typeof childRecord>

export type ChildRecords = {
  /** On disk when it returns. Call it before the child runs its program. */
  write(record: Omit<ChildRecord, 'worker'>): void
  remove(runId: string): void
  /** Ends what dead workers left. @returns the runs whose processes it ended */
  clear(): Promise<readonly string[]>
}

/** `folder` belongs to one agent of one worker machine; it is made when it is needed. */
export function openChildRecords(folder: string): ChildRecords {
  const pathOf = (runId: string) => join(folder, `${runId}.json`)
  const worker = markOf(process.pid) ?? { pid: process.pid, started: '' }
  return {
    write(record) {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      const path = pathOf(record.run_id)
      writeFileSync(`${path}.new`, JSON.stringify({ ...record, worker }), { mode: 0o600, flush: true })
      renameSync(`${path}.new`, path)
    },
    remove: (runId) => rmSync(pathOf(runId), { force: true }),
    async clear() {
      const left = namesIn(folder).flatMap((name) => recordIn(join(folder, name)) ?? [])
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

/** Takes over the records of workers that have died; the others still need theirs where they are. */
export function moveRecords(from: string, to: string): void {
  for (const name of namesIn(from)) {
    const record = recordIn(join(from, name))
    if (record === undefined || isAlive(record.worker)) continue
    mkdirSync(to, { recursive: true, mode: 0o700 })
    renameSync(join(from, name), join(to, name))
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith('.json'))
  } catch {
    return []
  }
}

/** A file that a crash left half written names nothing: the child had not started then. */
function recordIn(path: string): ChildRecord | undefined {
  try {
    return childRecord.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch {
    rmSync(path, { force: true })
    return undefined
  }
}
