/**
 * Lets one process at a time, and in it one piece of work at a time, use the store, and one of all processes of this machine change a
 * workspace.
 */

import { closeSync, constants, fstatSync, mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd, errnoOf } from '../../kit/errors.ts'
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
  using _end = atEnd(() => closeSync(file))
  await waitFor(() => libc.lock(file))
  return await work()
}

/** @throws Busy */
async function waitFor(isLocked: () => boolean): Promise<void> {
  for (let waited = 0; !isLocked(); waited += WAIT_MS) {
    if (waited > PATIENCE_MS) throw new Busy('another BraidClaw process is changing the workspace; try again when it is done')
    await Bun.sleep(WAIT_MS)
  }
}

/** `place` is the device and inode of the folder, which tell it from another folder of the same name. */
export type LockedWorkspace = Disposable & { readonly place: string }

/**
 * Locks the folder itself, not a file beside it: so processes with other homes, or with other names for the folder, wait for the same lock,
 * and nothing is written. It ends with the process, however that ends. Commands that work on the workspace itself share a lock on it for as
 * long as they run (sandbox/protect/placeholders.ts): nobody waits for these, and the lock of the store then keeps the processes of a home
 * apart. @throws Busy, or the system's error
 */
export async function lockWorkspace(libc: Libc, root: string): Promise<LockedWorkspace> {
  const folder = openSync(root, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await waitFor(() => libc.lock(folder) || libc.lock(folder, { shared: true }))
  } catch (error) {
    if (!withoutLocks.includes(errnoOf(error) ?? '')) {
      closeSync(folder)
      throw error
    }
  }
  return { place: placeOf(folder), [Symbol.dispose]: () => closeSync(folder) }
}

/** A file system that cannot lock folders, such as NFS, leaves the lock of the store, which the processes of one home share. */
const withoutLocks = ['EBADF', 'EINVAL', 'ENOLCK', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP']

function placeOf(folder: number): string {
  const { dev, ino } = fstatSync(folder, { bigint: true })
  return `${dev}:${ino}`
}
