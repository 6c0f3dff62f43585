/** Implements `control backup | restore | migrate`: the whole control plane into a file, out of it, and into PostgreSQL. */

import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { CliContext } from '../../../../channels/terminal/context.ts'
import { backup as backUp, restore as bringBack, copyStore, type TableDigest } from '../../../../control/store/copy-store.ts'
import { sha256 } from '../../../../kit/sha256.ts'
import { count, visible } from '../../../../kit/text.ts'
import { command, type Flags } from '../../../args/command.ts'
import { jsonFlag } from '../../../args/turn-flags.ts'
import { commandError, usageError } from '../../../exit.ts'
import { printOne } from '../../../print-list.ts'
import { withEnvFile } from '../../../server-files.ts'
import { controlEnv, controlLog, type DatabasePlace, lockDatabase, placeOf, settingsOf, sqlitePath, withStore } from './open-plane.ts'

const databaseFlag = {
  database: { type: 'text', about: 'postgres://… (default: CONTROLPLANE_DATABASE_URL, else SQLite in the home)' },
  ...jsonFlag,
} as const satisfies Flags

export const backup = command({
  flags: databaseFlag,
  args: { file: { type: 'text', about: 'A new file; only you can read it' } },
  examples: [['~/control-monday.sqlite', 'one state of the database, while the daemon serves']],
  details: () =>
    'The file has all tasks, logs and artifacts, and hashes of keys and tokens, never these themselves. With PostgreSQL stop the daemons first, or use pg_dump.',
  async run(bare, { database, json = false }, { file }) {
    const context = withEnvFile(bare)
    const path = resolve(context.cwd, file)
    if (existsSync(path)) throw commandError(`${visible(path)} exists; name a new file`)
    const env = controlEnv(context, { database })
    assertThere(context, env)
    const settings = settingsOf(env)
    const tables = await withStore(context, settings, (store) => backUp({ store, path, log: controlLog(context) }))
    const bytes = statSync(path).size
    const text = `backed up ${placeOf(context, settings)} to ${path}: ${sentenceOf(tables)}, ${Math.ceil(bytes / 1024)} KiB\n`
    printOne(context, { json, value: { file: path, bytes, ...summaryOf(tables) }, text })
  },
})

export const restore = command({
  flags: databaseFlag,
  args: { file: { type: 'text', about: 'A file that "control backup" wrote' } },
  examples: [['~/control-monday.sqlite', 'into a home without a control plane; BRAIDCLAW_HOME names another home']],
  details: () => 'Every table is compared with the file afterwards. For a new operator token: braidclaw control init --new-token.',
  async run(bare, { database, json = false }, { file }) {
    const context = withEnvFile(bare)
    const env = controlEnv(context, { database })
    const settings = settingsOf(env)
    const path = resolve(context.cwd, file)
    using _lock = lockDatabase(context, settings, 'stop it, and restore into a home of its own')
    const tables = await withStore(context, settings, (store) => bringBack({ path, store, log: controlLog(context) }))
    const place = placeOf(context, settings)
    printOne(context, { json, value: { database: place, ...summaryOf(tables) }, text: `restored to ${place}: ${sentenceOf(tables)}\n` })
  },
})

export const migrate = command({
  flags: {
    from: { type: 'text', about: 'Where it is now: postgres://…, or a SQLite file (default: the one in the home)' },
    to: { type: 'text', about: 'An empty database, postgres://… (default: CONTROLPLANE_DATABASE_URL)' },
    ...jsonFlag,
  },
  examples: [
    ['--to postgres://control@db.example.org/control', 'copies, compares every table, says how to switch'],
    ['', 'to CONTROLPLANE_DATABASE_URL, whose password is then on no command line'],
  ],
  details: () =>
    'Stop the daemon first: what it writes meanwhile is not copied, and the comparison then fails. The same command repeats a copy that was interrupted.',
  async run(bare, { from, to = withEnvFile(bare).env.CONTROLPLANE_DATABASE_URL, json = false }) {
    const context = withEnvFile(bare)
    if (!to) throw usageError('the target is missing; name it with --to postgres://…, or set CONTROLPLANE_DATABASE_URL')
    const [source, target] = [settingsFor(context, from), settingsFor(context, to)]
    const path = source.databaseUrl === undefined ? (source.path ?? sqlitePath(context)) : undefined
    if (path !== undefined && !existsSync(path))
      throw commandError(`the control plane to copy is missing: ${path} does not exist; name another with --from`)
    using _lock = lockDatabase(context, source, 'stop it first: what it writes meanwhile would not be copied')
    const copied = (table: string, rows: number) => context.process.stderr.write(`${table}: ${count(rows, 'row')}\n`)
    const tables = await withStore(context, source, (from) => withStore(context, target, (to) => copyStore({ from, to, copied })))
    const place = placeOf(context, target)
    const text = `copied to ${place}: ${sentenceOf(tables)}; both hold the same\n`
    printOne(context, { json, value: { database: place, ...summaryOf(tables) }, text })
    context.process.stderr.write(next)
  },
})

const next = `to switch: set CONTROLPLANE_DATABASE_URL in config.env of the home, where "control backup" reads it too, and start the daemon.
Keep the old file until you have seen that all is well; do not start a daemon on it again: the two databases would then differ.
`

function settingsFor(context: CliContext, place: string | undefined): DatabasePlace {
  const { CONTROLPLANE_DATABASE_URL: _, ...env } = context.env
  if (place === undefined) return settingsOf(env)
  if (/^postgres(ql)?:/.test(place)) return settingsOf({ ...env, CONTROLPLANE_DATABASE_URL: place })
  return { ...settingsOf(env), path: resolve(context.cwd, place) }
}

/** Refuses when there is no control plane, because the backup of an empty one would look complete. @throws CliExit 1 */
function assertThere(context: CliContext, env: CliContext['env']): void {
  if (settingsOf(env).databaseUrl !== undefined || existsSync(sqlitePath(context))) return
  throw commandError(`this home has no control plane: ${sqlitePath(context)} does not exist; BRAIDCLAW_HOME names another home`)
}

/** `digest` is the SHA-256 over the names, counts and digests of all tables; it is equal for a backup and the database restored from it. */
function summaryOf(tables: readonly TableDigest[]) {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0)
  return { rows, digest: sha256(JSON.stringify(tables.map(({ table, rows, digest }) => [table, rows, digest]))), tables }
}

function sentenceOf(tables: readonly TableDigest[]): string {
  const { rows, digest } = summaryOf(tables)
  return `${count(rows, 'row')} of ${count(tables.length, 'table')}, digest ${digest.slice(0, 16)}`
}
