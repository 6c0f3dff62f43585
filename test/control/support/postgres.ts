/** Starts a throw-away PostgreSQL in a temporary folder, as a user that is not root, on a free loopback port; and makes databases in it. */

import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type Postgres = {
  readonly pid: () => number
  readonly port: number
  /** Its Unix socket, for who cannot reach the loopback of this machine. */
  readonly socket: string
  /**
   * The URL of a new database: empty, or a copy of the one with the URL `model`, to which nobody is connected. `folder`: where its tables lie,
   * but not what it writes ahead; the user of the server owns it.
   */
  createDatabase(made?: { readonly model?: string; readonly folder?: string }): Promise<string>
  /** `immediate` is what a power cut does. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>
  start(): Promise<void>
  /** Ends every connection of every client. */
  cutConnections(): Promise<void>
  /** Stops it and removes its folder. */
  remove(): Promise<void>
}

const isRoot = process.getuid?.() === 0
/** PostgreSQL refuses to run as root. */
const asNobody = isRoot ? ['setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups'] : []
const nobody = 65_534

/** `settings`: for example `fsync=off` where the test kills no server; `-c` is added. */
export async function startPostgres(settings: readonly string[] = ['fsync=off']): Promise<Postgres> {
  const folder = mkdtempSync(join(tmpdir(), 'control-pg-'))
  if (isRoot) chownSync(folder, nobody, nobody)
  chmodSync(folder, 0o700)
  const data = join(folder, 'data')
  const port = await freePort()
  await makeCluster(data)
  const options = [
    `-p ${port}`,
    `-k ${folder}`,
    '-c listen_addresses=127.0.0.1',
    '-c shared_buffers=32MB',
    ...settings.map((one) => `-c ${one}`),
  ].join(' ')
  const names = { next: 1 }

  const start = () =>
    run([...asNobody, programOf('pg_ctl'), '-D', data, '-l', join(folder, 'log'), '-w', '-t', '20', '-o', options, 'start'])
  const stop = (mode = 'fast') => run([...asNobody, programOf('pg_ctl'), '-D', data, '-w', '-t', '20', '-m', mode, 'stop'])
  const pid = () => Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0])

  async function administer(statement: string): Promise<void> {
    const sql = new Bun.SQL({ url: `postgres://braidclaw@127.0.0.1:${port}/postgres`, max: 1 })
    try {
      await sql.unsafe(statement)
    } finally {
      await sql.close({ timeout: 0 })
    }
  }

  async function createDatabase({ model, folder }: { readonly model?: string; readonly folder?: string } = {}): Promise<string> {
    const name = `control${names.next}`
    names.next += 1
    if (folder !== undefined) {
      if (isRoot) chownSync(folder, nobody, nobody)
      await administer(`CREATE TABLESPACE of_${name} LOCATION '${folder}'`)
    }
    const from = model === undefined ? '' : ` TEMPLATE ${new URL(model).pathname.slice(1)}`
    await administer(`CREATE DATABASE ${name}${from}${folder === undefined ? '' : ` TABLESPACE of_${name}`}`)
    return `postgres://braidclaw@127.0.0.1:${port}/${name}`
  }

  async function remove(): Promise<void> {
    await stop('immediate').catch(() => undefined)
    rmSync(folder, { recursive: true, force: true })
  }

  const cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
  await start()
  return { pid, port, socket: join(folder, `.s.PGSQL.${port}`), createDatabase, stop, start, cutConnections: () => administer(cut), remove }
}

const initial = ['-U', 'braidclaw', '--auth=trust', '--no-sync', '--no-instructions', '-E', 'UTF8', '--locale=C']
const kept = join(import.meta.dir, '../../../node_modules/.cache/braidclaw-postgres')

/** To copy a new cluster takes a tenth of the time of making one, so the first one that is made is kept. */
async function makeCluster(data: string): Promise<void> {
  const initdb = programOf('initdb')
  const version = Bun.spawnSync([initdb, '--version']).stdout.toString()
  const model = join(kept, `cluster-${Bun.hash([version, ...asNobody, ...initial].join(' ')).toString(36)}`)
  if (existsSync(model)) return copy(model, data)
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

/** Debian keeps the server's programs out of the PATH. */
export function programOf(name: string): string {
  const found = Bun.which(name) ?? [...new Bun.Glob(`/usr/lib/postgresql/*/bin/${name}`).scanSync({ absolute: true })].at(-1)
  if (!found) throw new Error(`${name} is missing; run scripts/setup-debian`)
  return found
}

async function run(command: readonly string[]): Promise<void> {
  const child = Bun.spawn([...command], { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe', cwd: '/', timeout: 30_000 })
  const said = await Promise.race([new Response(child.stderr).text(), child.exited.then(() => '')])
  if ((await child.exited) !== 0) throw new Error(`${command[0]} failed: ${said}`)
}

function freePort(): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>()
  const server = createServer().listen(0, '127.0.0.1', () => {
    const address = server.address()
    server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
  })
  return promise
}
