#!/usr/bin/env bun

/**
 * Measures how many mutants of src/kernel, src/receipts and src/security the tests beside them detect: it runs every mutant of Stryker's instrumenter
 * against every test file of the same folder that reaches it. Run it by hand or at night, because it takes long: `npm run mutation --
 * [kernel|receipts|security] [--files GLOB] [--since REF] [--sample N] [--out FOLDER] [--record]`.
 */

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { writeSection } from '../bench/results.ts'
import { type Fate, hunt } from './mutation/hunt.ts'
import { instrumentCopy, type Mutant } from './mutation/instrument.ts'
import { listed, type Report, reportOf, table } from './mutation/score.ts'
import { alone, createTrials, type Reach, reachOf } from './mutation/trial.ts'
import type { Place } from './mutation/worker.ts'

const root = join(import.meta.dir, '..')
const FOLDERS = ['kernel', 'receipts', 'security']

/** Tests that sync files to disk take a tenth of the time here. */
const MEMORY = '/dev/shm'

/** Too slow to run for every mutant, because it executes the commands it judged. */
const LEFT_OUT = /canary\.test\.ts$/

type Options = {
  readonly files?: string
  readonly since?: string
  readonly sample?: string
  readonly out?: string
  /** Writes the table into bench/RESULTS.md. */
  readonly record?: boolean
}

if (import.meta.main) process.exit(await main(Bun.argv.slice(2)))

async function main(args: readonly string[]): Promise<number> {
  const text = { type: 'string' } as const
  const options = { files: text, since: text, sample: text, out: text, record: { type: 'boolean' } } as const
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true })
  const unknown = positionals.filter((name) => !FOLDERS.includes(name))
  if (unknown.length > 0) throw new Error(`no such folder: ${unknown.join(', ')}; take ${FOLDERS.join(' or ')}`)
  for (const folder of positionals.length > 0 ? positionals : FOLDERS) await measure(folder, values)
  return 0
}

async function measure(folder: string, options: Options): Promise<void> {
  const begin = performance.now()
  const files = await sources(folder, options)
  if (files.length === 0) return console.log(`src/${folder}: no file to mutate`)
  const scratch = mkdtempSync(join(existsSync(MEMORY) ? MEMORY : tmpdir(), 'braidclaw-mutation-'))
  try {
    const report = await score({
      folder,
      files,
      scratch,
      sample: Number(options.sample ?? Number.POSITIVE_INFINITY),
      tell: tellTo(folder, options.out),
    })
    await publish(folder, report, { ...options, seconds: Math.round((performance.now() - begin) / 1000) })
  } finally {
    unmountBelow(scratch)
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** A test that was killed while it had a small disk mounted leaves the mount behind. */
function unmountBelow(folder: string): void {
  const mounts = readFileSync('/proc/mounts', 'utf8').split('\n')
  for (const path of mounts.flatMap((line) => line.split(' ')[1] ?? []).filter((path) => path.startsWith(`${folder}/`))) {
    Bun.spawnSync(['umount', path])
  }
}

type Tell = (file: string, report: Report) => void

async function score(job: { folder: string; files: readonly string[]; scratch: string; sample: number; tell: Tell }): Promise<Report> {
  const place = { copy: join(job.scratch, 'copy'), scratch: job.scratch }
  const copy = await instrumentCopy({ root, copy: place.copy, tools: join(job.scratch, 'tools'), files: job.files })
  const mutants = sampled(copy.mutants, job.sample)
  const reaches: Reach[] = []
  for (const file of scan(`src/${job.folder}/**/*.test.ts`).filter((name) => !LEFT_OUT.test(name))) reaches.push(await reachOf(file, place))
  console.log(`src/${job.folder}: ${mutants.length} mutants in ${job.files.length} files, ${reaches.length} test files`)
  for (const file of job.files) await copy.put(file, 'plain')
  const fates = new Map<string, Fate>()
  for (const file of job.files) {
    await copy.put(file, 'mutants')
    const own = mutants.filter((mutant) => mutant.file === file)
    for (const [id, fate] of await huntIn(own, reaches, place)) fates.set(id, fate)
    await copy.put(file, 'plain')
    job.tell(file, reportOf(own, fates))
  }
  return reportOf(mutants, fates)
}

async function huntIn(mutants: readonly Mutant[], reaches: readonly Reach[], place: Place): Promise<ReadonlyMap<string, Fate>> {
  const { trial, end, dropAll } = createTrials(place)
  try {
    const fates = await hunt({ mutants, reaches, trial })
    const broken = await end()
    if (broken.length === 0) return fates
    const apart = reaches.map((reach) => (broken.includes(reach.file) ? alone(reach) : reach))
    return await huntIn(mutants, apart, place)
  } finally {
    dropAll()
  }
}

/** Returns the source files without tests and fixtures. */
async function sources(folder: string, { files, since }: Options): Promise<string[]> {
  const changed = since === undefined ? undefined : changedSince(since)
  const found = scan(`src/${folder}/**/*.ts`).filter((file) => !/\.test\.ts$|fixture\.ts$/.test(file))
  const wanted = found.filter((file) => (changed?.has(file) ?? true) && (files === undefined || new Bun.Glob(files).match(file)))
  const texts = await Promise.all(wanted.map((file) => Bun.file(join(root, file)).text()))
  return wanted.filter((_, index) => !texts[index]?.includes("from 'bun:test'"))
}

function changedSince(ref: string): Set<string> {
  const { exitCode, stdout, stderr } = Bun.spawnSync(['git', 'diff', '--name-only', ref, '--'], { cwd: root, stderr: 'pipe' })
  if (exitCode !== 0) throw new Error(`--since ${ref}: ${stderr}`)
  return new Set(stdout.toString().split('\n'))
}

function scan(pattern: string): string[] {
  return [...new Bun.Glob(pattern).scanSync({ cwd: root })].sort()
}

/** Returns the same sample every time, spread over the whole list. */
function sampled(mutants: readonly Mutant[], most: number): readonly Mutant[] {
  return mutants.length <= most
    ? mutants
    : Array.from({ length: most }, (_, at) => mutants[Math.floor((at * mutants.length) / most)]).filter((one) => one !== undefined)
}

/** Reports after each file, because the whole run takes long: a row of the table, and the survivors. */
function tellTo(folder: string, out: string | undefined): Tell {
  if (out !== undefined) mkdirSync(out, { recursive: true })
  let all = ''
  return (file, { total, survivors }) => {
    console.log(
      table([{ ...total, name: file }])
        .split('\n')
        .at(-1),
    )
    all += listed(survivors)
    if (out === undefined) console.log(listed(survivors))
    else writeFileSync(join(out, `${folder}.survivors.txt`), all)
  }
}

async function publish(folder: string, report: Report, options: Options & { readonly seconds: number }): Promise<void> {
  const { out, seconds, record } = options
  console.log(`${table([report.total])}\n${seconds} s`)
  if (out !== undefined) await Bun.write(join(out, `${folder}.json`), JSON.stringify(report, undefined, 2))
  if (record) await writeSection(`Mutation of src/${folder}`, `${seconds} s.\n\n${table([report.total, ...report.files])}`)
}
