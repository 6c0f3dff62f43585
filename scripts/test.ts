#!/usr/bin/env bun
/**
 * Runs each test file in its own process, twice as many at a time as there are cores, because tests wait for half of their time, and ends with
 * the line `N passed, N failed`:
 * `npm test -- [--deep] [--record] [--reports FOLDER] [PART OF A FILE NAME]…`. A whole run compiles the program under test first, because
 * the compiled one starts with a third of the processor time.
 */

import { chmodSync, cpSync, mkdirSync, mkdtempSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { compile } from './compile.ts'
import { countOfOtherTier, type Entry, entriesOf, keyOf, recordDurations, type Selection } from './test/entries.ts'
import { type PostgresOfRun, postgresOfRun } from './test/postgres-of-run.ts'
import { type Done, discard, killGroup, type Running, runEntry } from './test/run-entry.ts'
import { describeEntry, exitCodeOf, summary } from './test/summary.ts'

/** From so many files on that start the program, compiling costs less than it saves. */
const MANY_FILES = 50

const root = join(import.meta.dir, '..')

if (import.meta.main) process.exit(await main(Bun.argv.slice(2)))

/** @returns the exit code: 0 only when something passed and nothing failed, 130 when it was interrupted */
export async function main(args: readonly string[]): Promise<number> {
  const flag = { type: 'boolean' } as const
  const options = { deep: flag, record: flag, reports: { type: 'string' } } as const
  const { values, positionals: patterns } = parseArgs({ args: [...args], options, allowPositionals: true })
  const selection: Selection = { root, tier: values.deep ? 'deep' : 'fast', patterns }
  if (values.reports !== undefined) mkdirSync(values.reports, { recursive: true })
  const start = performance.now()
  const done = await runAll(selection, values.reports)
  if (done === 'interrupted') {
    console.log('interrupted; every process of the tests has been ended')
    return 130
  }
  if (values.record) recordDurations(root, done)
  const others = countOfOtherTier(selection)
  const note = selection.tier === 'fast' && others > 0 ? `${others} more with "npm run test:deep"` : undefined
  for (const line of summary({ done, ms: performance.now() - start, note })) console.log(line)
  return exitCodeOf(done)
}

async function runAll(selection: Selection, reports: string | undefined): Promise<readonly Done[] | 'interrupted'> {
  const scratch = mkdtempSync(join(tmpdir(), 'braidclaw-test-'))
  // Tests that run as another user must be able to enter this folder.
  chmodSync(scratch, 0o711)
  const running: Running = new Set()
  const postgres = postgresOfRun(scratch)
  const { promise: interrupted, resolve } = Promise.withResolvers<'interrupted'>()
  const interrupt = (): void => resolve('interrupted')
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt)
  try {
    return await Promise.race([runQueue(selection, { scratch, reports, running, postgres }), interrupted])
  } finally {
    for (const leader of running) killGroup(leader)
    await postgres.remove()
    discard(scratch)
  }
}

type Run = { readonly scratch: string; readonly reports: string | undefined; readonly running: Running; readonly postgres: PostgresOfRun }

async function runQueue(selection: Selection, { scratch, reports, running, postgres }: Run): Promise<readonly Done[]> {
  const entries = entriesOf(selection)
  const starting = entries.filter(({ startsProgram }) => startsProgram).length
  const compiled = starting < MANY_FILES ? Promise.resolve(undefined) : compiledIn(scratch)
  const queue = createQueue(entries, compiled)
  const done: Done[] = []
  const work = async (): Promise<void> => {
    for (let entry = await queue(); entry !== undefined; entry = await queue()) {
      const name = `${entries.indexOf(entry)}`
      const report = reports === undefined ? {} : { report: join(reports, `${keyOf(entry).replaceAll(/[/ ]/g, '-')}.xml`) }
      const binary = entry.startsProgram ? await compiled : undefined
      const services = { binary, postgres: entry.usesPostgres ? await postgres.socket() : undefined }
      const result = await runEntry(entry, { root, tier: selection.tier, scratch: join(scratch, name), ...services, ...report }, running)
      console.log(describeEntry(result))
      done.push(result)
    }
  }
  await Promise.all(Array.from({ length: 2 * availableParallelism() }, work))
  return done
}

/** Hands out the entries in their order, but while the program is compiled only those that never start it. */
function createQueue(entries: readonly Entry[], compiled: Promise<unknown>): () => Promise<Entry | undefined> {
  const left = [...entries]
  let isCompiled = false
  const waiting = compiled.then(() => {
    isCompiled = true
  })
  return async () => {
    const at = isCompiled ? 0 : left.findIndex(({ startsProgram }) => !startsProgram)
    if (at < 0) await waiting
    return left.splice(Math.max(at, 0), 1)[0]
  }
}

async function compiledIn(scratch: string): Promise<string> {
  const outfile = join(scratch, 'bin', 'braidclaw')
  const made = await compile({ entry: join(root, 'src/main.ts'), outfile })
  if (!made.ok) throw new Error(made.message)
  // The program looks for them beside its folder, as where it is installed.
  cpSync(join(root, 'bridges'), join(scratch, 'bridges'), { recursive: true })
  console.log('the program under test is compiled')
  return outfile
}
