#!/usr/bin/env bun
/**
 * Runs every test file in its own process, as many at a time as there are cores, and ends with the line `N passed, N failed`. In a run of many
 * files the program under test is compiled first: it starts with a third of the processor time.
 */

import { chmodSync, closeSync, cpSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, statSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { compile } from './compile.ts'
import { scrubbed } from './environment.ts'
import { type FileResult, fileResult } from './junit.ts'

/** The time limits of a file and of a test, so that the whole run is bounded even when something hangs. */
const FILE_LIMIT_MS = 600_000
const TEST_LIMIT_MS = 120_000
/** So many files that failed beside others are run once more, alone. More of them are no accident. */
const SECOND_RUNS = 2
/** From so many files on, compiling costs less than it saves. */
const MANY_FILES = 50

const root = join(import.meta.dir, '..')

type Done = FileResult & {
  readonly file: string
  readonly output: string
  readonly ms: number
  /** Skipped tests, and what they need (test/support/needs.ts). */
  readonly leftOut: readonly string[]
  readonly needs: readonly string[]
  /** It failed beside other files, and this is what it did alone. */
  readonly again?: boolean
}

if (import.meta.main) process.exit(await main(Bun.argv.slice(2)))

/** `patterns` are parts of file names; none means all. The exit code is 0 only when something passed and nothing failed. */
export async function main(patterns: readonly string[]): Promise<number> {
  const files = testFiles().filter((file) => patterns.length === 0 || patterns.some((pattern) => file.includes(pattern)))
  const scratch = mkdtempSync(join(tmpdir(), 'braidclaw-test-'))
  // Tests that run as another user must be able to enter this folder.
  chmodSync(scratch, 0o711)
  const run = { scratch, binary: files.length < MANY_FILES ? undefined : await compiledIn(scratch) }
  const done = await runAgain(await runAll(files, run), { ...run, scratch: join(scratch, 'again') })
  discard(scratch)
  return summarise(done)
}

type Run = {
  readonly scratch: string
  /** The compiled program under test; absent: bin/braidclaw, from source. */
  readonly binary: string | undefined
}

async function compiledIn(scratch: string): Promise<string> {
  const outfile = join(scratch, 'bin', 'braidclaw')
  const made = await compile({ entry: join(root, 'src/main.ts'), outfile })
  if (!made.ok) throw new Error(made.message)
  // The program looks for them beside its folder, as where it is installed.
  cpSync(join(root, 'bridges'), join(scratch, 'bridges'), { recursive: true })
  console.log('the program under test is compiled; some of its tests run it from source again')
  return outfile
}

/** Orders tests that cross adapters first: they take longest, and a long file started last would leave a core idle. */
function testFiles(): string[] {
  const found = [...new Bun.Glob('{src,test,bench,scripts}/**/*.test.{ts,tsx}').scanSync({ cwd: root })]
  const weight = (file: string): number => statSync(join(root, file)).size + (file.startsWith('test/') ? 1e9 : 0)
  return found.filter((file) => !file.includes('node_modules')).sort((a, b) => weight(b) - weight(a) || (a < b ? -1 : 1))
}

async function runAll(files: readonly string[], run: Run): Promise<Done[]> {
  const queue = files.entries()
  const done: Done[] = []
  const worker = async (): Promise<void> => {
    for (const [index, file] of queue) {
      const result = await runFile(file, { ...run, scratch: join(run.scratch, String(index)) })
      console.log(describe(result))
      done.push(result)
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, worker))
  return done
}

/** What a file said the first time stays in the output, and the summary names it. */
async function runAgain(done: readonly Done[], run: Run): Promise<Done[]> {
  const broken = done.filter(({ failed }) => failed > 0)
  if (broken.length > SECOND_RUNS || done.length === broken.length) return [...done]
  const results = [...done]
  for (const first of broken) {
    const second = await runFile(first.file, { ...run, scratch: join(run.scratch, String(done.indexOf(first))) })
    console.log(`once more, alone: ${describe(second)}`)
    results[done.indexOf(first)] = { ...second, again: true }
  }
  return results
}

/** Output goes to a file, because a pipe that a grandchild keeps open would never end. */
async function runFile(file: string, { scratch, binary }: Run): Promise<Done> {
  const paths = {
    home: join(scratch, 'home'),
    temporary: join(scratch, 'tmp'),
    log: join(scratch, 'log'),
    report: join(scratch, 'report.xml'),
  }
  for (const folder of [paths.home, paths.temporary]) mkdirSync(folder, { recursive: true })
  const start = performance.now()
  const log = openSync(paths.log, 'w')
  const child = Bun.spawn([process.execPath, ...flags(paths.report), `./${file}`], {
    cwd: root,
    env: { ...scrubbed(process.env, paths), ...(binary === undefined ? {} : { BRAIDCLAW_TEST_BINARY: binary }) },
    stdio: ['ignore', log, log],
    detached: true,
  })
  closeSync(log)
  let timedOut = false
  const timer = setTimeout(() => {
    timedOut = true
    killGroup(child.pid)
  }, FILE_LIMIT_MS)
  await child.exited
  clearTimeout(timer)
  killGroup(child.pid)
  const ending = { exitCode: child.exitCode, signal: child.signalCode, timedOut }
  const result = fileResult(readIfThere(paths.report), ending)
  const whole = result.failed + result.skipped > 0 ? readFileSync(paths.log, 'utf8') : ''
  discard(scratch)
  const told = { leftOut: after('(skip) ', whole), needs: after('not tried here: needs ', whole) }
  return { file, output: result.failed > 0 ? whole : '', ms: Math.round(performance.now() - start), ...result, ...told }
}

/** Returns the rest of each line that starts with this text. */
function after(beginning: string, output: string): readonly string[] {
  const lines = output.split('\n').filter((line) => line.startsWith(beginning))
  return [...new Set(lines.map((line) => line.slice(beginning.length)))]
}

/**
 * Kills what a test started and left behind. It does not use Bun's --no-orphans, because our executable would inherit that and hide its own
 * leaks.
 */
function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL')
  } catch {
    // The process group has already ended.
  }
}

function flags(report: string): string[] {
  const bun = ['--config=/dev/null', '--no-env-file', '--no-install']
  return [...bun, 'test', `--timeout=${TEST_LIMIT_MS}`, '--reporter=junit', `--reporter-outfile=${report}`]
}

function describe({ file, passed, failed, ms, trouble, output }: Done): string {
  const line = `${failed === 0 ? 'ok  ' : 'FAIL'} ${file}  ${passed} passed${failed === 0 ? '' : `, ${failed} failed`}  ${ms} ms`
  const told = output.split('\n').filter((text) => !text.startsWith('(pass)'))
  return [line, ...(trouble === undefined ? [] : [`     ${file} ${trouble}`]), ...told].join('\n').trimEnd()
}

function summarise(done: readonly Done[]): number {
  const sum = (key: 'passed' | 'failed' | 'skipped'): number => done.reduce((total, one) => total + one[key], 0)
  const [passed, failed, skipped] = [sum('passed'), sum('failed'), sum('skipped')]
  const broken = done.filter((one) => one.failed > 0)
  if (done.length === 0) console.log('\nno test file matches')
  for (const line of leftOut(done)) console.log(line)
  const shaky = done.filter((one) => one.again && one.failed === 0)
  if (shaky.length > 0)
    console.log(`\nfailed beside others, passed alone (see their first output):\n${shaky.map((one) => `  ${one.file}`).join('\n')}`)
  if (broken.length > 0) console.log(`\nfailed:\n${broken.map((one) => `  ${one.file}`).join('\n')}`)
  console.log(`\n${done.length} files\n${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`)
  return failed === 0 && passed > 0 ? 0 : 1
}

/** Lists skipped tests by name with the reason, so that a skipped test does not look like a passed one. */
function leftOut(done: readonly Done[]): readonly string[] {
  const files = done.filter((one) => one.leftOut.length > 0).sort((a, b) => (a.file < b.file ? -1 : 1))
  if (files.length === 0) return []
  const missing = [...new Set(files.flatMap(({ needs }) => needs.flatMap((line) => line.split(', '))))].sort()
  const why = missing.length === 0 ? '' : `, because here is no ${missing.join(', no ')}; "sudo scripts/setup-debian" installs the programs`
  const tests = files.flatMap(({ file, leftOut: names }) => names.map((name) => `  ${file}: ${name}`))
  return [`\nskipped${why}:`, ...tests]
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** Files that a test left unremovable must not fail the run. */
function discard(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch (error) {
    console.error(`left behind: ${error}`)
  }
}
