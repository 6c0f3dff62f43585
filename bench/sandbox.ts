/** What confinement costs a command: `true` plainly, in bubblewrap's own least sandbox, and in ours. `--json` prints the figures alone. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SandboxSettings, Spawn } from '../src/sandbox/contract.ts'
import { createSandbox } from '../src/sandbox/create-sandbox.ts'
import { spawnPlain } from '../src/tools/process.ts'

const RUNS = Number(process.argv.find((word) => /^\d+$/.test(word)) ?? 60)
const NEED_MS = 4
const PAUSE_MS = 20

type Row = {
  readonly name: string
  readonly p50: number
  readonly p10: number
  readonly over: number
  readonly ratio: number
  readonly need: number
}

const root = mkdtempSync(join(tmpdir(), 'braidclaw-bench-sandbox-'))
const folder = (...names: string[]) => {
  const path = join(root, ...names)
  mkdirSync(path, { recursive: true })
  return path
}
const env = { PATH: '/usr/bin:/bin' }
const plan = (cwd: string, argv: readonly string[] = ['/bin/true']) => ({
  argv,
  cwd,
  env,
  signal: new AbortController().signal,
  onOutput() {},
})

/** An empty folder, and a repository as people have them. */
const empty = folder('empty')
const repository = folder('repository')
folder('repository', '.git', 'hooks')
folder('repository', '.vscode')
writeFileSync(join(repository, '.git', 'config'), '')

async function sandbox(kind: SandboxSettings['kind'], workspace: string) {
  const limits = { memoryBytes: 2 ** 31, processes: 256, fileBytes: 2 ** 30, cpuSeconds: 60 }
  const places = { workspace, home: folder('home'), stateHome: folder('state') }
  const created = await createSandbox({ ...places, kind, protectedPaths: [], allowedDomains: [], limits, spawnPlain, log() {} })
  return created.ok ? created.sandbox : undefined
}

const floor = ['/usr/bin/bwrap', '--unshare-all', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', '--', '/bin/true']
const boxes = [
  { name: 'ours in an empty folder', need: NEED_MS, workspace: empty, box: await sandbox('bubblewrap', empty) },
  { name: 'ours in a git repository', need: NEED_MS, workspace: repository, box: await sandbox('bubblewrap', repository) },
  { name: 'landlock fall-back', need: 0, workspace: empty, box: await sandbox('landlock', empty) },
]
const subjects: readonly { readonly name: string; readonly need: number; readonly run: () => ReturnType<Spawn> }[] = [
  { name: 'plain', need: 0, run: () => spawnPlain(plan(empty)) },
  { name: 'bubblewrap, least', need: 0, run: () => spawnPlain(plan(empty, floor)) },
  ...boxes.flatMap(({ name, need, workspace, box }) => (box ? [{ name, need, run: () => box.spawn(plan(workspace)) }] : [])),
]

const times = new Map(subjects.map(({ name }): [string, number[]] => [name, []]))
for (let at = 0; at < RUNS; at++) {
  for (const { name, run } of subjects) {
    // As between two commands of a turn: a model is asked.
    await Bun.sleep(PAUSE_MS)
    const start = performance.now()
    const ended = await run()
    if (!ended.ok || ended.code !== 0) throw new Error(`${name}: ${JSON.stringify(ended)}`)
    times.get(name)?.push(performance.now() - start)
  }
}

for (const { box } of boxes) box?.close?.()
rmSync(root, { recursive: true, force: true })

const quantile = (name: string, part: number) => {
  const sorted = (times.get(name) ?? []).toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length * part)] ?? Number.NaN
}
const rows: Row[] = subjects.map(({ name, need }) => {
  const [p50, p10] = [quantile(name, 0.5), quantile(name, 0.1)]
  return { name, need, p50, p10, over: p50 - quantile('plain', 0.5), ratio: p50 / quantile('bubblewrap, least', 0.5) }
})

if (process.argv.includes('--json')) console.log(JSON.stringify({ bench: 'sandbox', runs: RUNS, root: process.getuid?.() === 0, rows }))
else
  for (const { name, p50, p10, over, ratio, need } of rows)
    console.log(
      `${name.padEnd(26)} p50 ${p50.toFixed(2)} ms (p10 ${p10.toFixed(2)})  over plain ${over.toFixed(2)} ms${need ? ` (need ≤ ${need})` : ''}  ${ratio.toFixed(2)} × least`,
    )
