#!/usr/bin/env bun
/**
 * The gateway as a program of its own, compiled, beside a floor: a bare Bun.serve whose turn is the streaming loop with SQLite and fsynced
 * receipts, compiled alike. `bun bench/server.ts [--json] [--only WORD]`; the model is a process on loopback without latency.
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { compile } from '../scripts/compile.ts'
import { firstLoad, turns, turnsPerSecond } from './http/requests.ts'
import { answersPerSecond, follow } from './http/sockets.ts'
import { type Place, type Server, start } from './http/start.ts'
import { startModel } from './loopback.ts'
import { median, quantile } from './measure.ts'
import { writeSection } from './results.ts'

type Figure = { readonly what: string; readonly value: number; readonly unit: string; readonly most?: number; readonly least?: number }
type Bench = { readonly ours: (scenario: string) => Promise<Server>; readonly floor: () => Promise<Server>; readonly token: string }

const root = join(import.meta.dir, '..')
const [braidclaw, floorServer] = [join(root, 'dist/braidclaw'), join(root, 'dist/floor/serve')]
const idleSeconds = 20

const parts: { readonly [name: string]: (bench: Bench) => Promise<readonly Figure[]> } = {
  ready,
  idle,
  health,
  turn,
  clients,
  watchers,
  dashboard,
}

/** 0 when every limit is met, 1 when one is missed. */
async function main(): Promise<number> {
  const { values } = parseArgs({ options: { json: { type: 'boolean', default: false }, only: { type: 'string' } } })
  for (const [entry, outfile] of [
    [join(root, 'src/main.ts'), braidclaw],
    [join(import.meta.dir, 'floor/serve.ts'), floorServer],
  ] as const) {
    const built = await compile({ entry, outfile })
    if (!built.ok) throw new Error(built.message)
  }
  const scratch = mkdtempSync(join(tmpdir(), 'braidclaw-bench-'))
  const model = await startModel()
  const figures: Figure[] = []
  try {
    const place = prepare(scratch, model.url)
    const bench = {
      ours: (scenario: string) => start([braidclaw, 'serve', '--port', '0', '--model', `bench/${scenario}`], place, scenario),
      floor: () => start([floorServer], place, 'one-tool'),
      token: await newToken(place),
    }
    for (const [name, part] of Object.entries(parts)) {
      if (values.only !== undefined && name !== values.only) continue
      const found = await part(bench)
      if (!values.json) for (const figure of found) console.log(line(figure))
      figures.push(...found)
    }
  } finally {
    model.stop()
    rmSync(scratch, { recursive: true, force: true })
  }
  if (values.json) console.log(JSON.stringify(figures, null, 2))
  else if (values.only === undefined) await writeSection('Server', table(figures))
  return figures.every(isMet) ? 0 : 1
}

function prepare(scratch: string, model: string): Place {
  const place = { home: join(scratch, 'home'), workspace: join(scratch, 'workspace'), store: join(scratch, 'store'), model }
  for (const folder of [place.home, place.workspace, place.store]) mkdirSync(folder, { mode: 0o700 })
  writeFileSync(join(place.workspace, 'notes.txt'), 'Buy milk.\n'.repeat(40))
  const config = `workspace_dir = "${place.workspace}"
[security]
autonomy = "full"
[limits]
max_tool_rounds = 30
[providers.models.bench]
kind = "openai-compatible"
model = "one-tool"
base_url = "${model}/v1"
api_key_env = "BENCH_API_KEY"
`
  writeFileSync(join(place.home, 'config.toml'), config, { mode: 0o600 })
  return place
}

async function newToken({ home, workspace }: Place): Promise<string> {
  const env = { PATH: '/usr/bin:/bin', HOME: home, BRAIDCLAW_HOME: home }
  const child = Bun.spawn([braidclaw, 'token', 'new', 'bench', '--scope', 'admin'], {
    cwd: workspace,
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  return (await child.stdout.text()).trim()
}

async function ready({ ours, floor }: Bench): Promise<readonly Figure[]> {
  const times: { ours: number[]; floor: number[] } = { ours: [], floor: [] }
  for (let round = 0; round < 15; round++) {
    await using one = await ours('one-tool')
    times.ours.push(one.readyMs)
    await using other = await floor()
    times.floor.push(other.readyMs)
  }
  return [
    { what: 'from the start to the first answer', value: median(times.ours), unit: 'ms', most: 80 },
    { what: '… of the floor', value: median(times.floor), unit: 'ms' },
  ]
}

async function idle({ ours, token }: Bench): Promise<readonly Figure[]> {
  await using server = await ours('one-tool')
  const fresh = await rest(server)
  await turns(server, token, 100)
  const used = await rest(server)
  const before = server.memory()
  const followers = await Promise.all(Array.from({ length: 200 }, () => follow(server.port, token)))
  const followed = await rest(server)
  for (const follower of followers) follower.close()
  return [
    { what: 'idle after its start, memory', value: fresh.memory, unit: 'MB', most: 60 },
    { what: 'idle after its start, processor', value: fresh.cpu, unit: '%', most: 0.3 },
    { what: 'idle after 100 turns, memory', value: used.memory, unit: 'MB' },
    { what: 'idle after 100 turns, processor', value: used.cpu, unit: '%', most: 0.3 },
    { what: '200 clients that follow and hear nothing, memory more', value: followed.memory - before, unit: 'MB', most: 20 },
    { what: '… processor', value: followed.cpu, unit: '%' },
  ]
}

/** What the server uses while nothing happens. */
async function rest(server: Server): Promise<{ readonly memory: number; readonly cpu: number }> {
  await Bun.sleep(3_000)
  const before = server.cpu()
  await Bun.sleep(idleSeconds * 1_000)
  return { memory: server.memory(), cpu: (server.cpu() - before) / idleSeconds / 10 }
}

async function health({ ours, floor }: Bench): Promise<readonly Figure[]> {
  await using one = await ours('one-tool')
  await using other = await floor()
  const [rates, shares]: [number[], number[]] = [[], []]
  for (let round = 0; round < 10; round++) {
    const own = await answersPerSecond(one.port, '/health', 16, 500)
    rates.push(own)
    shares.push(own / (await answersPerSecond(other.port, '/health', 16, 500)))
  }
  return [
    { what: 'GET /health', value: median(rates), unit: '/s' },
    { what: '… against a bare Bun.serve', value: median(shares) * 100, unit: '%', least: 40 },
  ]
}

async function turn({ ours, floor, token }: Bench): Promise<readonly Figure[]> {
  await using one = await ours('one-tool')
  await using other = await floor()
  for (const server of [one, other]) await turns(server, token, 100)
  const [all, ratios]: [number[], number[]] = [[], []]
  const floors: number[] = []
  for (let round = 0; round < 40; round++) {
    const own = await turns(one, token, 10)
    const theirs = await turns(other, token, 10)
    all.push(...own)
    floors.push(...theirs)
    ratios.push(median(own) / median(theirs))
  }
  return [
    { what: 'a warm turn with one tool over HTTP, p50', value: median(all), unit: 'ms' },
    { what: '… of the floor', value: median(floors), unit: 'ms' },
    { what: '… against the floor', value: median(ratios), unit: '×', most: 2.5 },
    { what: '… p99 against p50', value: quantile(all, 0.99) / median(all), unit: '×', most: 4 },
    { what: '… p99 against p50, of the floor', value: quantile(floors, 0.99) / median(floors), unit: '×' },
  ]
}

async function clients({ ours, floor, token }: Bench): Promise<readonly Figure[]> {
  await using one = await ours('one-tool')
  await using other = await floor()
  for (const server of [one, other]) await turnsPerSecond(server, token, 8, 10)
  const [rates, floors]: [number[], number[]] = [[], []]
  for (let round = 0; round < 5; round++) {
    rates.push(await turnsPerSecond(one, token, 8, 50))
    floors.push(await turnsPerSecond(other, token, 8, 50))
  }
  return [
    { what: '8 clients, turns with one tool', value: median(rates), unit: '/s', least: 250 },
    { what: '… of the floor', value: median(floors), unit: '/s' },
  ]
}

async function watchers({ ours, token }: Bench): Promise<readonly Figure[]> {
  const measured = async (scenario: string, runs: number) => {
    await using server = await ours(scenario)
    const followers = await Promise.all(Array.from({ length: 50 }, () => follow(server.port, token)))
    await turns(server, token, 1)
    for (const follower of followers) follower.delays()
    await turns(server, token, runs)
    await Bun.sleep(500)
    const delays = followers.flatMap((follower) => follower.delays())
    for (const follower of followers) follower.close()
    return delays
  }
  const [busy, burst] = [await measured('busy', 5), await measured('4000-deltas', 1)]
  return [
    { what: '50 clients watch a busy run, events to each', value: busy.length / 250, unit: 'a run' },
    { what: '… delay of an event, p50', value: median(busy), unit: 'ms' },
    { what: '… p99', value: quantile(busy, 0.99), unit: 'ms', most: 20 },
    { what: '50 clients, 4,000 pieces of text at once, p99', value: quantile(burst, 0.99), unit: 'ms' },
  ]
}

async function dashboard({ ours }: Bench): Promise<readonly Figure[]> {
  await using server = await ours('one-tool')
  const bytes = await firstLoad(server.url)
  return bytes === undefined ? [] : [{ what: 'first load of the dashboard', value: bytes / 1e3, unit: 'KB', most: 150 }]
}

function isMet({ value, most, least }: Figure): boolean {
  return value <= (most ?? Number.POSITIVE_INFINITY) && value >= (least ?? Number.NEGATIVE_INFINITY)
}

function limitOf({ most, least, unit }: Figure): string {
  if (most !== undefined) return `at most ${most} ${unit}`
  return least === undefined ? '' : `at least ${least} ${unit}`
}

const isLimited = ({ most, least }: Figure) => most !== undefined || least !== undefined
const shown = ({ value, unit }: Figure) => `${value.toFixed(value < 10 ? 2 : value < 1_000 ? 1 : 0)} ${unit}`
const line = (figure: Figure) => `${figure.what}  ${shown(figure)}  ${limitOf(figure)}${isMet(figure) ? '' : '  MISSED'}`

function table(figures: readonly Figure[]): string {
  const rows = figures.map(
    (figure) =>
      `| ${figure.what} | ${shown(figure)} | ${limitOf(figure)} | ${isLimited(figure) ? (isMet(figure) ? 'yes' : '**no**') : ''} |`,
  )
  return ['| what | measured | limit | met |', '|---|--:|---|---|', ...rows].join('\n')
}

if (import.meta.main) process.exit(await main())
