/**
 * Makes databases in a throw-away PostgreSQL. All files of a run share one, which the runner starts; a test that kills, stops or configures a
 * server starts one of its own. Both lie in a temporary folder, run as a user that is not root and listen on a free loopback port.
 */

import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { needs } from '../../support/needs.ts'
import { freePort } from './free-port.ts'

export type Databases = {
  readonly port: number
  /** Its Unix socket, for who cannot reach the loopback of this machine. */
  readonly socket: string
  /**
   * The URL of a new database, which is empty. `folder`: where its tables lie, but not what it writes ahead; the user of the server owns it.
   */
  createDatabase(made?: { readonly folder?: string }): Promise<string>
  /** Ends its connections and removes it. */
  dropDatabase(url: string): Promise<void>
  /** Ends every connection of every client of this database. */
  cutConnections(url: string): Promise<void>
}

/** A server that belongs to one test file. */
export type Postgres = Databases & {
  readonly pid: () => number
  /** `immediate` is what a power cut does. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>
  start(): Promise<void>
  /** Stops it and removes its folder. */
  remove(): Promise<void>
}

/** The runner puts the socket of the shared server here. */
export const SHARED_POSTGRES = 'BRAIDCLAW_TEST_POSTGRES'

/** What nobody kills needs neither to be on the disk nor to be there after a crash. */
export const careless = [
  'fsync=off',
  'full_page_writes=off',
  'wal_level=minimal',
  'max_wal_senders=0',
  'autovacuum=off',
  'max_connections=200',
]

/** For `describe.if(hasPostgres())`. */
export function hasPostgres(): boolean {
  return findProgram('initdb') !== undefined || needs('postgres')
}

/** Returns the server that all files of this run share; absent in a file that runs by hand. */
export function sharedPostgres(): Databases | undefined {
  const socket = Bun.env[SHARED_POSTGRES]
  return socket === undefined ? undefined : databasesAt(socket)
}

const isRoot = process.getuid?.() === 0
/** PostgreSQL refuses to run as root. */
const asNobody = isRoot ? ['setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups'] : []
const nobody = 65_534

export type PostgresOptions = {
  /** Each becomes an option `-c`. */
  readonly settings?: readonly string[]
  /** Where its folder is made. */
  readonly within?: string
}

export async function startPostgres({ settings = ['fsync=off'], within = tmpdir() }: PostgresOptions = {}): Promise<Postgres> {
  const folder = mkdtempSync(join(within, 'control-pg-'))
  if (isRoot) chownSync(folder, nobody, nobody)
  chmodSync(folder, 0o700)
  const data = join(folder, 'data')
  await makeCluster(data)
  const port = await freePort()
  const options = [
    `-p ${port}`,
    `-k ${folder}`,
    '-c listen_addresses=127.0.0.1',
    '-c shared_buffers=32MB',
    ...settings.map((one) => `-c ${one}`),
  ].join(' ')

  const start = () =>
    run([...asNobody, programOf('pg_ctl'), '-D', data, '-l', join(folder, 'log'), '-w', '-t', '20', '-o', options, 'start'])
  const stop = (mode = 'fast') => run([...asNobody, programOf('pg_ctl'), '-D', data, '-w', '-t', '20', '-m', mode, 'stop'])
  const pid = () => Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0])

  async function remove(): Promise<void> {
    await stop('immediate').catch(() => undefined)
    rmSync(folder, { recursive: true, force: true })
  }

  await start()
  return { ...databasesAt(join(folder, `.s.PGSQL.${port}`)), pid, stop, start, remove }
}

function databasesAt(socket: string): Databases {
  const port = Number(socket.split('.').at(-1))
  const urlOf = (name: string) => `postgres://braidclaw@127.0.0.1:${port}/${name}`

  async function administer(statement: string): Promise<void> {
    const sql = new Bun.SQL({ url: urlOf('postgres'), max: 1 })
    try {
      await sql.unsafe(statement)
    } finally {
      await sql.close({ timeout: 0 })
    }
  }

  async function createDatabase({ folder }: { readonly folder?: string } = {}): Promise<string> {
    // The other files of the run make databases in the same server.
    const name = `control_${Bun.randomUUIDv7('hex').replaceAll('-', '')}`
    if (folder !== undefined) {
      if (isRoot) chownSync(folder, nobody, nobody)
      await administer(`CREATE TABLESPACE of_${name} LOCATION '${folder}'`)
    }
    await administer(`CREATE DATABASE ${name}${folder === undefined ? '' : ` TABLESPACE of_${name}`}`)
    return urlOf(name)
  }

  return {
    ...{ port, socket, createDatabase },
    dropDatabase: (url) => administer(`DROP DATABASE ${nameIn(url)} WITH (FORCE)`),
    cutConnections: (url) => administer(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${nameIn(url)}'`),
  }
}

const nameIn = (url: string) => new URL(url).pathname.slice(1)

const initial = ['-U', 'braidclaw', '--auth=trust', '--no-sync', '--no-instructions', '-E', 'UTF8', '--locale=C']
const kept = join(import.meta.dir, '../../../node_modules/.cache/braidclaw-postgres')

/** To copy a new cluster takes a tenth of the time of making one, so the first one that is made is kept. */
async function makeCluster(data: string): Promise<void> {
  const initdb = programOf('initdb')
  const version = Bun.spawnSync([initdb, '--version']).stdout.toString()
  const model = join(kept, `cluster-${Bun.hash([version, ...asNobody, ...initial].join(' ')).toString(36)}`)
  // A copy of this folder that kept no owners is none that the server would read.
  if (existsSync(model) && (!isRoot || statSync(model).uid === nobody)) return copy(model, data)
  await run([...asNobody, initdb, '-D', data, ...initial])
  mkdirSync(kept, { recursive: true })
  const draft = mkdtempSync(join(kept, 'draft-'))
  await copy(data, join(draft, 'data'))
  // Another process may have been faster: then its folder is there and stays.
  await rename(join(draft, 'data'), model).catch(() => undefined)
  rmSync(draft, { recursive: true, force: true })
}

/** With its owner and modes, which the server looks at. */
const copy = (from: string, to: string) => run(['cp', '-a', '--reflink=auto', from, to])

export function programOf(name: string): string {
  const found = findProgram(name)
  if (found === undefined) throw new Error(`${name} is missing; run scripts/setup-debian`)
  return found
}

/** Debian keeps the server's programs out of the PATH. */
export function findProgram(name: string): string | undefined {
  return Bun.which(name) ?? [...new Bun.Glob(`/usr/lib/postgresql/*/bin/${name}`).scanSync({ absolute: true })].at(-1)
}

async function run(command: readonly string[]): Promise<void> {
  const child = Bun.spawn([...command], { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe', cwd: '/', timeout: 30_000 })
  const said = await Promise.race([new Response(child.stderr).text(), child.exited.then(() => '')])
  if ((await child.exited) !== 0) throw new Error(`${command[0]} failed: ${said}`)
}
