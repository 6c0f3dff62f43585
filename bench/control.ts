#!/usr/bin/env bun
/**
 * The control plane as a program of its own, compiled, beside a floor: a bare Bun.serve with the same statements, compiled alike.
 * `bun bench/control.ts [--json] [--only WORD]`.
 */

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { compile } from '../scripts/compile.ts'
import { claimCost, claimCostOnPostgres } from './control/claim-cost.ts'
import { type Bench, type Figure, isMet, line, operatorToken, table } from './control/figures.ts'
import { daemonsOnPostgres } from './control/on-postgres.ts'
import { claimAndComplete, creates, idleAndReady, waitingWorkers } from './control/over-http.ts'
import { start } from './http/start.ts'
import { writeSection } from './results.ts'

const root = join(import.meta.dir, '..')
const [braidclaw, floorServer] = [join(root, 'dist/braidclaw'), join(root, 'dist/floor/control-floor')]

const parts: { readonly [name: string]: (bench: Bench) => Promise<readonly Figure[]> } = {
  ready: idleAndReady,
  create: creates,
  claim: claimAndComplete,
  waiting: waitingWorkers,
  cost: claimCost,
  'postgres-cost': claimCostOnPostgres,
  postgres: daemonsOnPostgres,
}

/** 0 when every limit is met, 1 when one is missed. */
async function main(): Promise<number> {
  const { values } = parseArgs({ options: { json: { type: 'boolean', default: false }, only: { type: 'string' } } })
  for (const [entry, outfile] of [
    [join(root, 'src/main.ts'), braidclaw],
    [join(import.meta.dir, 'floor/control-floor.ts'), floorServer],
  ] as const) {
    const built = await compile({ entry, outfile })
    if (!built.ok) throw new Error(built.message)
  }
  const scratch = mkdtempSync(join(tmpdir(), 'braidclaw-bench-'))
  const figures: Figure[] = []
  try {
    const bench = benchIn(scratch)
    for (const [name, part] of Object.entries(parts)) {
      if (values.only !== undefined && name !== values.only) continue
      const found = await part(bench)
      if (!values.json) for (const figure of found) console.log(line(figure))
      figures.push(...found)
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
  if (values.json) console.log(JSON.stringify(figures, null, 2))
  else if (values.only === undefined) await writeSection('Control plane', table(figures))
  return figures.every(isMet) ? 0 : 1
}

/** Each server has a home of its own. */
function benchIn(scratch: string): Bench {
  const homes = { next: 0 }
  const place = () => {
    homes.next += 1
    const home = join(scratch, `home-${homes.next}`)
    mkdirSync(home, { mode: 0o700 })
    return { home, workspace: home, store: home, model: '' }
  }
  const env = { CONTROLPLANE_OPERATOR_TOKEN: operatorToken, CONTROLPLANE_SHARED_SECRET: 'shared-secret-of-the-bench' }
  return {
    scratch,
    ours: () => start([braidclaw, 'control', 'serve', '--port', '0'], place(), '', env),
    onPostgres: (url) => start([braidclaw, 'control', 'serve', '--port', '0'], place(), '', { ...env, CONTROLPLANE_DATABASE_URL: url }),
    floor: () => start([floorServer], place(), ''),
  }
}

if (import.meta.main) process.exit(await main())
