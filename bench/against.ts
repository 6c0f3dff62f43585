#!/usr/bin/env bun
/** Times one-shot turns of this tree and of an earlier commit in turn: `bun bench/against.ts COMMIT [--runs N]`. Exit code 1 when one is slower by more than 2 %. */

import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { compile } from '../scripts/compile.ts'
import { startModel } from './loopback.ts'
import { median, type Program, type Timing, time } from './measure.ts'
import { scenarios, thinkingOf } from './model.ts'
import { benchEnv, prepare, rehearse, turn } from './run.ts'

const root = join(import.meta.dir, '..')
const compared = ['text', 'filter', 'one-tool', '20-reads', 'one-shell', '4000-deltas'].filter((name) => name in scenarios)
const slack = 1.02

export type Comparison = {
  readonly ratio: number
  readonly from: number
  readonly to: number
  readonly before: number
  readonly after: number
}

/** Returns the median of the ratios of the rounds and the interval that holds the true one in 95 of 100 cases. */
export function comparisonOf(before: Timing, after: Timing): Comparison {
  const ratios = after.times.map((ms, round) => ms / (before.times[round] ?? Number.NaN)).toSorted((a, b) => a - b)
  const half = 0.98 * Math.sqrt(ratios.length)
  const at = (rank: number) => ratios[Math.min(ratios.length - 1, Math.max(0, Math.round(rank)))] ?? Number.NaN
  const middle = (ratios.length - 1) / 2
  return { ratio: median(ratios), from: at(middle - half), to: at(middle + half), before: before.median, after: after.median }
}

if (import.meta.main) process.exit(await main())

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { runs: { type: 'string', default: '60' } } })
  const [commit] = positionals
  if (commit === undefined) throw new Error('name the commit to compare with: bun bench/against.ts COMMIT')
  const scratch = mkdtempSync(join(tmpdir(), 'braidclaw-against-'))
  const model = await startModel()
  try {
    const sides = { before: checkOut(commit, join(scratch, 'tree')), after: root }
    const built = await Promise.all(Object.entries(sides).map(([name, tree]) => sideOf(name, tree, { scratch, url: model.url })))
    console.log(`| scenario | ${commit}, ms | now, ms | ratio | 95 of 100 |\n|---|---|---|---|---|`)
    let slower = 0
    for (const scenario of ['--version', ...compared]) {
      const programs = built.map((program) => program(scenario))
      if (scenario !== '--version') for (const program of programs) await rehearse(program, scenario, model)
      const timings = await time(programs, Number(values.runs), thinkingOf(scenario))
      const [before, after] = [timings.get('before'), timings.get('after')]
      if (!before || !after) throw new Error(`no figures of ${scenario}`)
      const found = comparisonOf(before, after)
      if (found.from > slack) slower++
      const [from, to] = [found.from.toFixed(3), found.to.toFixed(3)]
      console.log(
        `| ${scenario} | ${found.before.toFixed(1)} | ${found.after.toFixed(1)} | ${found.ratio.toFixed(3)} × | ${from} to ${to} |`,
      )
    }
    return slower > 0 ? 1 : 0
  } finally {
    model.stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** Writes the tree of the commit into the folder, with the packages that are installed here. */
function checkOut(commit: string, folder: string): string {
  mkdirSync(folder)
  const script = 'git archive "$1" | tar -x -C "$2"'
  const done = Bun.spawnSync(['bash', '-o', 'pipefail', '-c', script, 'bash', commit, folder], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (!done.success) throw new Error(`the commit ${commit} cannot be read`)
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** Builds the executable of a tree; it runs in a home of its own, since a later version may change the database. */
async function sideOf(name: string, tree: string, { scratch, url }: { readonly scratch: string; readonly url: string }) {
  const outfile = join(scratch, 'bin', name, 'braidclaw')
  const built = await compile({ entry: join(tree, 'src', 'main.ts'), outfile })
  if (!built.ok) throw new Error(built.message)
  mkdirSync(join(scratch, name))
  const folders = prepare(join(scratch, name), url)
  return (scenario: string): Program => ({
    name,
    command: [outfile, ...(scenario === '--version' ? [scenario] : turn('braidclaw', scenario))],
    env: benchEnv(folders, url),
    cwd: folders.workspace,
  })
}
