#!/usr/bin/env bun
/**
 * `npm run bench`: whole turns of our executable beside the floors, on a loopback model, and then the parts by themselves.
 * Flags: `--runs N`, `--json`, `--floors` (these alone), `--turns` (without the parts).
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { compile } from '../scripts/compile.ts'
import { type Model, startModel } from './loopback.ts'
import { type Program, peakMemory, type Timing, time } from './measure.ts'
import { type Stats, scenarios, thinkingOf } from './model.ts'
import { isMet, measureParts, partsTable } from './parts.ts'
import { type Figure, judge, table } from './report.ts'
import { writeSection } from './results.ts'

const root = join(import.meta.dir, '..')
const dist = join(root, 'dist')
const PROMPT = 'What is in the notes?'
/** These come close to what they may cost: more runs, so that one bad moment of the machine does not decide. */
const narrow = ['text', 'filter', 'one-tool', 'one-tool-key']
/** Too short to be taken for a secret, and as long as real ones. */
const KEYS = { short: 'bench', long: 'sk-bench-Zx81kdQpLm20vBnTy77aReWq90sJhUcF' }
const entries: { readonly [name: string]: string } = { braidclaw: join(root, 'src', 'main.ts'), share: join(import.meta.dir, 'share.ts') }

if (import.meta.main) process.exit(await main())

/** 0 when every target is met, 1 when one is missed. */
async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      runs: { type: 'string', default: '40' },
      json: { type: 'boolean', default: false },
      floors: { type: 'boolean', default: false },
      turns: { type: 'boolean', default: false },
    },
  })
  const names = ['hello', 'bare', 'store', ...(values.floors ? [] : ['braidclaw'])]
  for (const name of names) await build(name)
  const scratch = mkdtempSync(join(tmpdir(), 'braidclaw-bench-'))
  const model = await startModel()
  try {
    const folders = prepare(scratch, model.url)
    const figures = await measure({ names, folders, model, runs: Number(values.runs) })
    const turns = await publish(figures, values)
    return values.floors || values.turns ? turns : Math.max(turns, await publishParts(values.json))
  } finally {
    model.stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}

async function publish(
  figures: readonly Figure[],
  { json, floors }: { readonly json: boolean; readonly floors: boolean },
): Promise<number> {
  const verdicts = judge(figures)
  if (json) console.log(JSON.stringify({ figures, verdicts }, null, 2))
  else console.log(table(figures, verdicts))
  if (floors) return 0
  await writeSection('Turns', table(figures, verdicts))
  return verdicts.every((verdict) => verdict.met !== false) ? 0 : 1
}

async function publishParts(json: boolean): Promise<number> {
  await build('share')
  const parts = await measureParts(executable('share'))
  console.log(json ? JSON.stringify({ parts }, null, 2) : `\n${partsTable(parts)}`)
  await writeSection('Parts', partsTable(parts))
  return parts.every(isMet) ? 0 : 1
}

async function build(name: string): Promise<void> {
  const entry = entries[name] ?? join(import.meta.dir, 'floor', `${name}.ts`)
  const built = await compile({ entry, outfile: join(dist, name === 'braidclaw' ? name : join('floor', name)) })
  if (!built.ok) throw new Error(built.message)
}

type Folders = { readonly home: string; readonly workspace: string; readonly store: string }

/** A home that knows the loopback model, and a workspace with something to read. */
export function prepare(scratch: string, url: string): Folders {
  const folders = { home: join(scratch, 'home'), workspace: join(scratch, 'workspace'), store: join(scratch, 'store') }
  for (const folder of Object.values(folders)) mkdirSync(folder, { mode: 0o700 })
  writeFileSync(join(folders.workspace, 'notes.txt'), 'Buy milk.\n'.repeat(40))
  writeFileSync(join(folders.home, 'config.toml'), config(url, folders.workspace), { mode: 0o600 })
  return folders
}

function config(url: string, workspace: string): string {
  return `workspace_dir = "${workspace}"

[security]
autonomy = "full"

[limits]
max_tool_rounds = 30
max_same_results = 30

[providers.models.bench]
kind = "openai-compatible"
model = "text"
base_url = "${url}/v1"
api_key_env = "BENCH_API_KEY"
`
}

type Job = { readonly names: readonly string[]; readonly folders: Folders; readonly model: Model; readonly runs: number }

async function measure({ names, folders, model, runs }: Job): Promise<Figure[]> {
  const program = (name: string, args: readonly string[]) => programOf(name, folders, model)(args)
  const starts = names.filter((name) => name === 'hello' || name === 'braidclaw').map((name) => program(name, ['--version']))
  const figures = figuresOf('--version', await time(starts, runs * 2))
  for (const scenario of Object.keys(scenarios)) {
    const key = scenario.endsWith('-key') ? KEYS.long : KEYS.short
    const programs = names.filter((name) => name !== 'hello').map((name) => withKey(program(name, turn(name, scenario)), key))
    const first = new Map<string, Stats>()
    for (const one of programs) first.set(one.name, await rehearse(one, scenario, model))
    const timings = await time(programs, narrow.includes(scenario) ? runs * 5 : runs, thinkingOf(scenario))
    const memory = new Map<string, number>()
    for (const one of programs) memory.set(one.name, await peakMemory(one))
    figures.push(
      ...figuresOf(scenario, timings).map((figure) => ({
        ...figure,
        mib: memory.get(figure.program),
        bytes: first.get(figure.program)?.firstBytes,
      })),
    )
  }
  return figures
}

export function benchEnv({ home, store }: Folders, url: string): Program['env'] {
  return { PATH: '/usr/bin:/bin', HOME: home, BENCH_URL: `${url}/v1`, BENCH_STORE: store, BRAIDCLAW_HOME: home, BENCH_API_KEY: KEYS.short }
}

function programOf(name: string, folders: Folders, model: Model): (args: readonly string[]) => Program {
  const env = benchEnv(folders, model.url)
  return (args) => ({ name, command: [executable(name), ...args], env, cwd: folders.workspace })
}

function withKey(program: Program, key: string): Program {
  return { ...program, env: { ...program.env, BENCH_API_KEY: key } }
}

function executable(name: string): string {
  return name === 'braidclaw' ? join(dist, name) : join(dist, 'floor', name)
}

export function turn(name: string, scenario: string): string[] {
  if (name !== 'braidclaw') return [scenario, PROMPT]
  return scenario === 'filter' ? [PROMPT, '-m', 'bench/filter'] : ['agent', '-m', PROMPT, '--model', `bench/${scenario}`]
}

function figuresOf(scenario: string, timings: ReadonlyMap<string, Timing>): Figure[] {
  return [...timings].map(([program, timing]) => ({ scenario, program, ...timing }))
}

/** Runs once untimed and makes sure that the whole turn was done: every round asked for, the answer printed. */
export async function rehearse({ name, command, env, cwd }: Program, scenario: string, model: Model): Promise<Stats> {
  await model.stats()
  const child = Bun.spawn([...command], { env, cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  const seen = await model.stats()
  const expected = { requests: (scenarios[scenario]?.rounds ?? 0) + 1, answer: scenarios[scenario]?.answer.join('').trim() ?? '' }
  if (code === 0 && seen.requests === expected.requests && stdout.includes(expected.answer)) return seen
  throw new Error(
    `${name} did not do "${scenario}": exit code ${code}, ${seen.requests} of ${expected.requests} requests\n${stdout}\n${stderr}`,
  )
}
