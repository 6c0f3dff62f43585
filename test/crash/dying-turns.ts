/** Provides the crash tests of turns with a home of their own, a process that dies at a named step, and the random numbers of CRASH_SEED. */

import { afterEach, test as always } from 'bun:test'
import { join } from 'node:path'
import { needs } from '../support/needs.ts'
import { createHome, type Home, randomFrom } from './home.ts'

export const test = always.if(needs('bwrap'))
const root = join(import.meta.dir, '../..')
const bun = [process.execPath, '--config=/dev/null', '--no-env-file', '--no-install']
export const seed = Number(process.env.CRASH_SEED ?? crypto.getRandomValues(new Uint32Array(1))[0])
export const random = randomFrom(seed)

export const shell = (id: string, command: string) => ({ id, name: 'shell', arguments: { command } })

const opened: Home[] = []

/** Removes the homes after each test of the file that calls this. */
export function removeHomes(): void {
  afterEach(() => {
    for (const home of opened.splice(0)) home[Symbol.dispose]()
  })
}

export function fresh(): Home {
  const home = createHome({ binary: join(root, 'src/main.ts') })
  opened.push(home)
  return home
}

export function remove(home: Home): void {
  opened.splice(opened.indexOf(home), 1)
  home[Symbol.dispose]()
}

/** Starts a process that dies at the step `dieAt`; without it, it lives. */
export const start = (home: Home, args: readonly string[], responses: readonly object[] = [], dieAt = '') =>
  home.start(args, responses, ['env', `DIE_AT=${dieAt}`, ...bun, `--preload=${root}/test/support/die-at.ts`])
