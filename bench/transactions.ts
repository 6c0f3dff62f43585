/**
 * What a private view of the workspace costs: a command that changes nothing or ten files, the list of 5,000 changes, and git in a
 * repository of 20,000 files. Each beside a floor in the same run. `--json` prints the figures alone.
 */

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSandbox } from '../src/sandbox/create-sandbox.ts'
import { spawnPlain } from '../src/tools/process.ts'

const RUNS = Number(process.argv.find((word) => /^\d+$/.test(word)) ?? 40)
const PAUSE_MS = 20
const FILES = 20_000
const CHANGES = 5_000

type Row = { readonly name: string; readonly ms: number; readonly floor: number; readonly need: string; readonly met: boolean }

const root = mkdtempSync(join(tmpdir(), 'braidclaw-bench-transactions-'))
const folder = (...names: string[]) => {
  const path = join(root, ...names)
  mkdirSync(path, { recursive: true })
  return path
}
const signal = new AbortController().signal
const env = { PATH: '/usr/bin:/bin' }

async function open(workspace: string) {
  const limits = { memoryBytes: 2 ** 31, processes: 256, fileBytes: 2 ** 30, cpuSeconds: 600 }
  const places = { workspace, home: folder('home'), stateHome: folder('state') }
  const created = await createSandbox({
    ...places,
    kind: 'bubblewrap',
    protectedPaths: [],
    allowedDomains: [],
    limits,
    spawnPlain,
    log() {},
  })
  if (!created.ok) throw new Error(created.missing)
  const views = await created.sandbox.privateViews()
  if (!views.ok) throw new Error(views.why)
  const { spawn, close } = created.sandbox
  return {
    close,
    async run(argv: readonly string[], take: (text: string) => void = () => {}) {
      const onOutput = (chunk: Uint8Array) => take(Buffer.from(chunk).toString())
      const ended = await spawn({ argv, cwd: workspace, env, signal, view: 'private', onOutput })
      if (!ended.ok || ended.code !== 0 || !ended.view) throw new Error(`${argv.join(' ')}: ${JSON.stringify(ended)}`)
      return ended.view
    },
  }
}

const plain = async (cwd: string, argv: readonly string[], take: (text: string) => void = () => {}) => {
  const onOutput = (chunk: Uint8Array) => take(Buffer.from(chunk).toString())
  const ended = await spawnPlain({ argv, cwd, env, signal, onOutput })
  if (!ended.ok || ended.code !== 0) throw new Error(`${argv.join(' ')}: ${JSON.stringify(ended)}`)
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

const median = (times: readonly number[]) => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN

/** Takes turns, so that a slow moment of the machine meets both. */
async function beside(one: () => Promise<unknown>, floor: () => Promise<unknown>) {
  const times = { one: [] as number[], floor: [] as number[] }
  for (let at = 0; at < RUNS; at++) {
    await Bun.sleep(PAUSE_MS)
    times.floor.push(await timed(floor))
    await Bun.sleep(PAUSE_MS)
    times.one.push(await timed(one))
  }
  return { ms: median(times.one), floor: median(times.floor) }
}

async function single(name: string, argv: readonly string[], need: number): Promise<Row> {
  const workspace = folder('small')
  const box = await open(workspace)
  const one = async () => {
    const view = await box.run(argv)
    await view.changes()
    view.drop()
  }
  const { ms, floor } = await beside(one, () => plain(workspace, ['/bin/true']))
  box.close?.()
  return { name, ms, floor, need: `at most ${need} ms over a plain command`, met: ms - floor <= need }
}

/** The floor hashes the same files plainly. */
async function manyChanges(): Promise<Row> {
  const box = await open(folder('many'))
  const view = await box.run(['/bin/sh', '-c', `seq ${CHANGES} | split -l 1 -a 4 - f`])
  const upper = join(view.folder, 'up')
  const hash = async () => {
    for (const file of readdirSync(upper)) new Bun.CryptoHasher('sha256').update(readFileSync(join(upper, file))).digest('hex')
  }
  const floor = await timed(hash)
  const ms = await timed(async () => {
    if ((await view.changes()).length !== CHANGES) throw new Error('changes are missing')
  })
  view.drop()
  box.close?.()
  return { name: `the list of ${CHANGES} changes`, ms, floor, need: 'at most 200 ms', met: ms <= 200 }
}

/** Prints how long each of the two takes, in nanoseconds. */
const twice = 'for n in 1 2; do began=$(date +%s%N); git status --short >/dev/null; echo $(($(date +%s%N) - began)); done'

/** A view has to look at each file once; from the second time on it knows them. */
async function gitStatus(): Promise<readonly Row[]> {
  const workspace = folder('repository')
  for (let at = 0; at < FILES; at++) writeFileSync(join(folder('repository', `d${at % 200}`), `f${at}`), String(at))
  await plain(workspace, ['/bin/sh', '-c', 'git init -q && git add . && git -c user.name=n -c user.email=e@x commit -qm one && git status'])
  const box = await open(workspace)
  const inside: string[] = []
  const outside: string[] = []
  for (let at = 0; at < 10; at++) {
    const said = { inside: '', outside: '' }
    await plain(workspace, ['/bin/sh', '-c', twice], (text) => (said.outside += text))
    const view = await box.run(['/bin/sh', '-c', twice], (text) => (said.inside += text))
    view.drop()
    inside.push(said.inside)
    outside.push(said.outside)
  }
  box.close?.()
  return ['first', 'second'].map((time, at) => {
    const [ms = Number.NaN, floor = Number.NaN] = [inside, outside].map((texts) =>
      median(texts.map((text) => Number(text.split('\n')[at]) / 1e6)),
    )
    const name = `git status, ${FILES} files, ${time} time`
    return {
      name,
      ms,
      floor,
      need: time === 'first' ? 'none' : 'at most 1.5 times a plain one',
      met: time === 'first' || ms <= 1.5 * floor,
    }
  })
}

const rows = [
  await single('a command that changes nothing', ['/bin/true'], 9),
  await single('a command that makes 10 files', ['/bin/sh', '-c', 'for n in 1 2 3 4 5 6 7 8 9 10; do echo $n > f$n; done'], 12),
  await manyChanges(),
  ...(await gitStatus()),
]
rmSync(root, { recursive: true, force: true })

if (process.argv.includes('--json'))
  console.log(JSON.stringify({ bench: 'transactions', runs: RUNS, root: process.getuid?.() === 0, rows }))
else
  for (const { name, ms, floor, need, met } of rows)
    console.log(
      `${name.padEnd(32)} ${ms.toFixed(2)} ms, floor ${floor.toFixed(2)} ms, ${(ms / floor).toFixed(2)} times; ${need}: ${met ? 'met' : 'NOT met'}`,
    )
