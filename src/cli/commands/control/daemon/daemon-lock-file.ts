/** Lets one process at a time serve, restore or migrate the SQLite database of a home; the kernel ends the lock with its process. */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { CliContext } from '../../../../channels/terminal/context.ts'
import { takeLock } from '../../../../memory/agent-files/folder-lock.ts'
import { CliExit, exitCodes } from '../../../exit.ts'
import { controlFolder, type DatabasePlace, sqlitePath } from './open-plane.ts'

/** PostgreSQL needs none. @throws CliExit 1 when a daemon serves it; `advice` says what to do then */
export function lockDatabase(context: CliContext, { databaseUrl, path }: DatabasePlace, advice: string): Disposable {
  if (databaseUrl !== undefined || path !== undefined) return { [Symbol.dispose]: () => {} }
  mkdirSync(controlFolder(context), { recursive: true, mode: 0o700 })
  const lock = takeLock(join(controlFolder(context), 'daemon.lock'), 0)
  if (lock) return lock
  throw new CliExit(exitCodes.error, `error: a daemon serves ${sqlitePath(context)}; ${advice}`)
}
