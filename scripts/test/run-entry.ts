/** Runs one test file in a process with a home and a temporary folder of its own, and ends everything that it leaves behind. */

import { closeSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { SHARED_POSTGRES } from '../../test/control/support/postgres.ts'
import { scrubbed } from '../environment.ts'
import type { Entry, Tier } from './entries.ts'
import { type FileResult, fileResult } from './junit.ts'

/** The time limits of a file and of a test, so that the whole run is bounded even when something hangs. */
const FILE_LIMIT_MS = 600_000
const TEST_LIMIT_MS = 120_000

export type Done = FileResult &
  Entry & {
    readonly output: string
    readonly ms: number
    /** Processor time of the process and of all children that it waited for. */
    readonly processorMs: number
    /** Skipped tests, and what they need (test/support/needs.ts). */
    readonly leftOut: readonly string[]
    readonly needs: readonly string[]
  }

export type Setting = {
  readonly root: string
  readonly tier: Tier
  /** A folder for this file alone; it is removed. */
  readonly scratch: string
  /** The compiled program under test; absent: bin/braidclaw, from source. */
  readonly binary: string | undefined
  /** The socket of the PostgreSQL of the run; absent: the file does not use it, or it is not installed. */
  readonly postgres: string | undefined
  /** Where the JUnit report is kept; absent: nowhere. */
  readonly report?: string
}

/** The leaders of the process groups that run now. */
export type Running = Set<number>

/** Output goes to a file, because a pipe that a grandchild keeps open would never end. */
export async function runEntry(entry: Entry, setting: Setting, running: Running): Promise<Done> {
  const { scratch } = setting
  const paths = { home: join(scratch, 'home'), temporary: join(scratch, 'tmp'), log: join(scratch, 'log') }
  const report = setting.report ?? join(scratch, 'report.xml')
  for (const folder of [paths.home, paths.temporary]) mkdirSync(folder, { recursive: true })
  const start = performance.now()
  const log = openSync(paths.log, 'w')
  const child = Bun.spawn([process.execPath, ...flags(report), `./${entry.file}`], {
    cwd: setting.root,
    env: environmentOf(entry, setting, paths),
    stdio: ['ignore', log, log],
    detached: true,
  })
  running.add(child.pid)
  closeSync(log)
  let timedOut = false
  const timer = setTimeout(() => {
    timedOut = true
    killGroup(child.pid)
  }, FILE_LIMIT_MS)
  await child.exited
  clearTimeout(timer)
  killGroup(child.pid)
  running.delete(child.pid)
  const result = fileResult(readIfThere(report), { exitCode: child.exitCode, signal: child.signalCode, timedOut })
  const whole = result.failed + result.skipped > 0 ? readFileSync(paths.log, 'utf8') : ''
  discard(scratch)
  return {
    ...entry,
    ...result,
    output: result.failed > 0 ? whole : '',
    ms: Math.round(performance.now() - start),
    processorMs: Math.round(Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1_000),
    leftOut: linesAfter('(skip) ', whole),
    needs: linesAfter('not tried here: needs ', whole),
  }
}

function environmentOf(
  { form }: Entry,
  { tier, binary, postgres }: Setting,
  paths: Parameters<typeof scrubbed>[1],
): Record<string, string> {
  const shared: Record<string, string> = postgres === undefined ? {} : { [SHARED_POSTGRES]: postgres }
  const env = { ...scrubbed(process.env, paths), ...shared, TEST_TIER: tier }
  return binary === undefined || form === 'other' ? env : { ...env, BRAIDCLAW_TEST_BINARY: binary }
}

function flags(report: string): string[] {
  const bun = ['--config=/dev/null', '--no-env-file', '--no-install']
  return [...bun, 'test', `--timeout=${TEST_LIMIT_MS}`, '--reporter=junit', `--reporter-outfile=${report}`]
}

/** Returns the rest of each line that starts with this text. */
function linesAfter(beginning: string, output: string): readonly string[] {
  const lines = output.split('\n').filter((line) => line.startsWith(beginning))
  return [...new Set(lines.map((line) => line.slice(beginning.length)))]
}

/**
 * Kills what a test started and left behind. It does not use Bun's --no-orphans, because our executable would inherit that and hide its own
 * leaks.
 */
export function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL')
  } catch {
    // The process group has already ended.
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** Removes a folder; files that a test left unremovable do not fail the run. */
export function discard(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch (error) {
    console.error(`left behind: ${error}`)
  }
}
