/** Lets one process at a time, and in it one piece of work at a time, change the workspace through the store. */

import { closeSync, mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'
import type { Libc } from './tree/libc.ts'

const WAIT_MS = 20
const PATIENCE_MS = 30_000

export type Turns = { take<T>(work: () => Promise<T>): Promise<T> }

export class Busy extends Error {}

export function createTurns(store: string, libc: () => Libc): Turns {
  const state: { last: Promise<unknown> } = { last: Promise.resolve() }
  return {
    take(work) {
      const turn = state.last.then(() => locked(store, libc(), work))
      state.last = turn.catch(() => undefined)
      return turn
    },
  }
}

/** The lock ends with the process, however that ends. @throws Busy, or what the work throws */
async function locked<T>(store: string, libc: Libc, work: () => Promise<T>): Promise<T> {
  mkdirSync(store, { recursive: true, mode: 0o700 })
  const file = openSync(join(store, '.lock'), 'a', 0o600)
  try {
    for (let waited = 0; !libc.lock(file); waited += WAIT_MS) {
      if (waited > PATIENCE_MS) throw new Busy('another BraidClaw process is changing the workspace; try again when it is done')
      await Bun.sleep(WAIT_MS)
    }
    return await work()
  } finally {
    closeSync(file)
  }
}
