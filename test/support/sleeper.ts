/** Finds a child process from the outside: by a sleep with a length that nothing else on this machine has. */

import { readFileSync } from 'node:fs'

/** The length of a sleep that nothing else on this machine has. */
export const uniqueSeconds = (): number => 4_711 + process.pid / 1e8

/** @returns its process number, while it is there */
export function sleeperOf(seconds: number): number | undefined {
  for (const name of new Bun.Glob('[0-9]*').scanSync({ cwd: '/proc', onlyFiles: false })) {
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, 'latin1')
      if (words === `sleep\0${seconds}\0` || words.endsWith(`/sleep\0${seconds}\0`)) return Number(name)
    } catch {
      // It ended while we looked.
    }
  }
  return undefined
}
