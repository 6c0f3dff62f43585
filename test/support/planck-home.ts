/** Provides a /tmp/planckclaw that only one process and its children see, so that scripts that know only this folder can be tested. */

import { mkdirSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { executable, type Nest } from './cli.ts'
import { folderOf } from './daemon.ts'

export type PlanckHome = {
  /** The real path of the folder outside. */
  readonly dir: string
  /** See Invocation: the launcher of a program that sees the folder this way. */
  readonly through: readonly string[]
  /** Flags for a daemon that serves it. */
  readonly args: readonly string[]
  /** Returns the script unchanged, or with the folder's real path where mounts are not permitted. */
  readonly fitted: (script: string) => string
}

export function planckHome(at: Nest): PlanckHome {
  const tmp = join(at.dir, 'tmp')
  const dir = join(tmp, 'planckclaw')
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const through = [...unshare, 'sh', '-ec', `${mounts(at.dir, tmp)}\nexec "$@"`, 'sh']
  if (Bun.spawnSync([...through, 'true']).success)
    return { dir, through, args: ['--fifo-dir', '/tmp/planckclaw'], fitted: (script) => script }
  const other = folderOf(at)
  return { dir: other, through: [], args: ['--fifo-dir', other], fitted: (script) => script.replaceAll('/tmp/planckclaw', other) }
}

const unshare = process.geteuid?.() === 0 ? ['unshare', '-m'] : ['unshare', '-rm']

/** Mounts what is below /tmp and needed there: always the nest, sometimes a clone and the executable. */
function mounts(nest: string, tmp: string): string {
  const needed = [...new Set([nest, join(import.meta.dir, '../..'), dirname(executable)])]
  const kept = needed.filter((path) => path.startsWith('/tmp/')).map((path) => ({ path, place: join(tmp, relative('/tmp', path)) }))
  for (const { place } of kept) mkdirSync(place, { recursive: true })
  return [...kept.map(({ path, place }) => `mount --bind '${path}' '${place}'`), `mount --rbind '${tmp}' /tmp`].join('\n')
}
