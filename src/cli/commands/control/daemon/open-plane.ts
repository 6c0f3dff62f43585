/** Opens the database of the control plane without serving it, for commands of the machine that it lives on. */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { CliContext } from '../../../../channels/terminal/context.ts'
import type { Plane, PlaneOptions } from '../../../../control/contract/plane.ts'
import { PlaneRefusal } from '../../../../control/contract/plane-refusal.ts'
import type { Store } from '../../../../control/contract/store-port.ts'
import { createPlane } from '../../../../control/plane/create-plane.ts'
import { type ControlSettings, controlSettings } from '../../../../control/server/control-options.ts'
import { openSqlite } from '../../../../control/store/open-sqlite.ts'
import { createLog } from '../../../../host/setup/context.ts'
import { atAsyncEnd, errorText } from '../../../../kit/errors.ts'
import { takeLock } from '../../../../memory/agent-files/folder-lock.ts'
import { commandError, usageError } from '../../../exit.ts'

export function controlFolder({ home }: Pick<CliContext, 'home'>): string {
  return join(home, 'control')
}

export function sqlitePath(context: Pick<CliContext, 'home'>): string {
  return join(controlFolder(context), 'control.sqlite')
}

/** Returns the environment of the control plane, in which flags replace variables. */
export function controlEnv(
  { env }: Pick<CliContext, 'env'>,
  { database, port }: { readonly database?: string; readonly port?: number },
): CliContext['env'] {
  return {
    ...env,
    ...(database === undefined ? {} : { CONTROLPLANE_DATABASE_URL: database }),
    ...(port === undefined ? {} : { CONTROLPLANE_API_PORT: String(port) }),
  }
}

/** Logs at level info unless BRAIDCLAW_LOG names another, because a server runs without a person who watches it. */
export function controlLog({ env, say, redactor }: CliContext): PlaneOptions['log'] {
  const log = createLog({ request: env.BRAIDCLAW_LOG, level: 'info', write: say, redact: redactor.text, now: Date.now })
  return (level, event, fields) => log(level, event, { ...fields })
}

/** @throws CliExit 2 that names the variable and its value */
export function settingsOf(env: CliContext['env']): ControlSettings {
  try {
    return controlSettings(env)
  } catch (error) {
    throw usageError(errorText(error))
  }
}

export type OpenPlane = { readonly plane: Plane; readonly place: string }

/** @throws CliExit when the database cannot be opened */
export function withPlane<T>(context: CliContext, env: CliContext['env'], use: (open: OpenPlane) => Promise<T>): Promise<T> {
  const settings = settingsOf(env)
  return withStore(context, settings, (store) => use({ plane: planeOver(store, settings, context), place: placeOf(context, settings) }))
}

/** @throws CliExit when the database cannot be opened */
export function withStore<T>(context: CliContext, place: DatabasePlace, use: (store: Store) => Promise<T>): Promise<T> {
  return refusalAsExit(async () => {
    const store = await openStore(context, place)
    await using _end = atAsyncEnd(() => store.close())
    return await use(store)
  })
}

/** `path`: another SQLite file than that of the home. */
export type DatabasePlace = Pick<ControlSettings, 'databaseUrl'> & { readonly path?: string }

/** Returns the place of the database, without its password. */
export function placeOf(context: Pick<CliContext, 'home'>, { databaseUrl, path }: DatabasePlace): string {
  return databaseUrl === undefined ? (path ?? sqlitePath(context)) : withoutPassword(databaseUrl)
}

/** Leaves out the password, and everything when the address cannot be read. */
export function withoutPassword(url: string): string {
  const parsed = URL.parse(url)
  if (parsed === null) return 'the database of CONTROLPLANE_DATABASE_URL'
  return `postgres://${parsed.username === '' ? '' : `${parsed.username}@`}${parsed.host}${parsed.pathname}`
}

async function openStore(context: CliContext, { databaseUrl, path = sqlitePath(context) }: DatabasePlace): Promise<Store> {
  const log = controlLog(context)
  if (databaseUrl === undefined) return openSqlite({ path, log })
  context.redactor.register(databaseUrl, 'CONTROLPLANE_DATABASE_URL')
  const { openPostgres } = await import('../../../../control/store/open-postgres.ts')
  return openPostgres({ url: databaseUrl, log })
}

function planeOver(store: Store, { leaseSeconds, approvalHours }: ControlSettings, context: CliContext): Plane {
  const randomBytes = (count: number) => crypto.getRandomValues(new Uint8Array(count))
  return createPlane({ store, leaseSeconds, approvalHours, randomBytes, now: Date.now, random: Math.random, log: controlLog(context) })
}

/** Turns a refusal of the database into an exit with its message. */
export async function refusalAsExit<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof PlaneRefusal) throw commandError(error.message)
    throw error
  }
}

/** Locks an SQLite database; PostgreSQL needs no lock. @throws CliExit 1 when a daemon serves it; `advice` says what to do then */
export function lockDatabase(context: CliContext, { databaseUrl, path }: DatabasePlace, advice: string): Disposable {
  if (databaseUrl !== undefined || path !== undefined) return { [Symbol.dispose]: () => {} }
  mkdirSync(controlFolder(context), { recursive: true, mode: 0o700 })
  const lock = takeLock(join(controlFolder(context), 'daemon.lock'), 0)
  if (lock) return lock
  throw commandError(`a daemon serves ${sqlitePath(context)}; ${advice}`)
}
