/** Provides tests with an agent folder with a history, a model that repeats its input, and a disk that fails at a chosen step. */

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Summarise } from '../conversations/compact.ts'
import { openRecall, type Recall, type RecallOptions } from './agent-memory.ts'
import { type Disk, realDisk } from './disk.ts'

export type AgentFolderFixture = {
  readonly folder: string
  /** The logged lines, as `level event {fields}`. */
  readonly logged: string[]
  readonly clock: { now: number }
  open(own?: Partial<RecallOptions>): Recall
  /** '' when there is none. */
  read(name: string): string
  write(name: string, text: string): void
  /** Appends the pairs `q1 a1`, `q2 a2`, … */
  fill(pairs: number, from?: number): void
  remove(): void
}

/** Does not sync: only a power failure would show the difference, and the tests would be slow. */
const quickDisk: Disk = { ...realDisk, sync: () => {}, syncFolder: () => {} }

/** 2026-05-12T12:00:00Z */
const noon = 1_778_587_200_000

export function createAgentFolderFixture(): AgentFolderFixture {
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-recall-'))
  const logged: string[] = []
  const clock = { now: noon }
  const path = (name: string) => join(folder, name)
  return {
    folder,
    logged,
    clock,
    open(own = {}) {
      const log: RecallOptions['log'] = (level, event, fields = {}) => void logged.push(`${level} ${event} ${JSON.stringify(fields)}`)
      const opened = openRecall({ folder, now: () => clock.now, log, max: 10, keep: 4, disk: quickDisk, ...own })
      if (!opened.ok) throw new Error(opened.message)
      return opened.recall
    },
    read: (name) => (existsSync(path(name)) ? readFileSync(path(name), 'utf8') : ''),
    write: (name, text) => writeFileSync(path(name), text),
    fill: (pairs, from = 1) => writeFileSync(path('history.jsonl'), historyOf(from, pairs)),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

export function historyOf(from: number, pairs: number): string {
  const lines = Array.from({ length: pairs }, (_, at) => [line('user', `q${from + at}`), line('assistant', `a${from + at}`)])
  return lines
    .flat()
    .map((each) => `${each}\n`)
    .join('')
}

export function line(role: string, content: string): string {
  return JSON.stringify({ role, content })
}

/** Returns the summary "up to aN" for the last answer it received. */
export const upTo: Summarise = async ({ text }) => {
  const answers = [...text.matchAll(/"content":"(a\d+)"/g)].map((match) => match[1])
  return { ok: true, text: `up to ${answers.at(-1)}`, model: 'small' }
}

/** Returns a signal that never aborts. */
export const never = () => new AbortController().signal

export class Ended extends Error {}

/** Simulates a crash before step number `last` + 1, in which half of a write may still happen. Nothing happens afterwards. */
export function endingDisk(last: number, end: () => void = () => {}): Disk & { readonly steps: { count: number } } {
  const steps = { count: 0 }
  const mortal = <A extends readonly unknown[], R>(step: (...args: A) => R, half?: (...args: A) => void) => {
    return (...args: A): R => {
      steps.count += 1
      if (steps.count <= last) return step(...args)
      if (steps.count === last + 1) half?.(...args)
      end()
      throw new Ended()
    }
  }
  const halfWrite: Disk['write'] = (file, bytes, position) => realDisk.write(file, bytes.subarray(0, bytes.length / 2), position)
  return {
    steps,
    create: mortal(realDisk.create),
    open: mortal(realDisk.open),
    write: mortal(realDisk.write, halfWrite),
    truncate: mortal(realDisk.truncate),
    sync: mortal(quickDisk.sync),
    // A process that has ended has no open files.
    close: realDisk.close,
    rename: mortal(realDisk.rename),
    remove: mortal(realDisk.remove),
    syncFolder: mortal(quickDisk.syncFolder),
  }
}
