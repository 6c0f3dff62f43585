import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type OpenedMemory, openMemory } from './memory.ts'
import { migrations } from './migrations.ts'
import { storageFailure } from './storage-failure.ts'
import { openStore } from './store.ts'

let folder = ''
let path = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'braidclaw-store-'))
  path = join(folder, 'home', 'memory.sqlite')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const heard: string[] = []
const open = (busyTimeoutMs?: number): OpenedMemory =>
  openMemory({ path, log: (_, event) => heard.push(event), now: () => 0, busyTimeoutMs })
const run = { runId: 'r', conversationId: 'c', turnId: 't', provider: 'p', model: 'm', channel: 'cli' }

function trouble(opened: OpenedMemory): string {
  if (!opened.ok) return `${opened.failure.code}: ${opened.failure.message}`
  opened.memory.close()
  return 'it opened'
}

function use<T>(body: (memory: Extract<OpenedMemory, { ok: true }>['memory']) => T, busyTimeoutMs?: number): T {
  const opened = open(busyTimeoutMs)
  if (!opened.ok) throw new Error(opened.failure.message)
  try {
    return body(opened.memory)
  } finally {
    opened.memory.close()
  }
}

const note = (body: unknown = {}) => ({ run, kind: 'note' as const, type: 'x', at: 1, body })

test('a file that is no database is reported as damaged, and not touched', () => {
  mkdirSync(join(folder, 'home'))
  writeFileSync(path, 'this is no database at all, but it is long enough to have a header '.repeat(20), { mode: 0o600 })
  const before = statSync(path).size
  expect(trouble(open())).toStartWith(`corrupt: database "${path}" is damaged or not a SQLite database (SQLITE_NOTADB`)
  expect(statSync(path).size).toBe(before)
})

test('a database with a broken page is reported as damaged when it is read', () => {
  use((memory) => memory.transaction(() => Array.from({ length: 400 }, () => memory.journal.append(note({ text: 'x'.repeat(500) })))))
  const file = Bun.file(path)
  const bytes = new Uint8Array(readFileSync(path))
  bytes.fill(0x5a, 4096, file.size - 4096)
  writeFileSync(path, bytes)
  const said = (() => {
    const opened = open()
    if (!opened.ok) return opened.failure.code
    try {
      opened.memory.journal.events('r')
      return 'nothing'
    } catch (error) {
      return opened.memory.failureOf(error)?.code
    } finally {
      opened.memory.close()
    }
  })()
  expect(said).toBe('corrupt')
})

test('a newer schema is refused and left as it is', () => {
  use(() => {})
  const db = new Database(path)
  db.run('PRAGMA user_version = 999')
  db.close()
  expect(trouble(open())).toBe(
    `newer_schema: database "${path}" was written by a newer BraidClaw (schema 999, this version knows up to ${migrations.length}); update BraidClaw`,
  )
})

test('a folder in the place of the file, and a file in the place of the folder, are reported', () => {
  mkdirSync(path, { recursive: true })
  expect(trouble(open())).toStartWith('unreadable: ')
  rmSync(join(folder, 'home'), { recursive: true })
  writeFileSync(join(folder, 'home'), '')
  expect(trouble(open())).toStartWith('unreadable: ')
})

test('a write while another process holds the database fails as locked, after the time given', async () => {
  use(() => {})
  const holder = Bun.spawn({
    cmd: [
      process.execPath,
      '-e',
      `const { Database } = require('bun:sqlite'); const db = new Database(${JSON.stringify(path)}); db.run('BEGIN EXCLUSIVE'); console.log('held'); setTimeout(() => {}, 60000)`,
    ],
    stdout: 'pipe',
  })
  try {
    await holder.stdout.getReader().read()
    use((memory) => {
      let code: string | undefined
      try {
        memory.journal.append(note())
      } catch (error) {
        code = memory.failureOf(error)?.code
      }
      expect(code).toBe('locked')
      expect(memory.journal.events('r')).toEqual([])
    }, 50)
  } finally {
    holder.kill()
    await holder.exited
  }
})

test('opening a new file waits for the process that is just making it', async () => {
  mkdirSync(join(folder, 'home'), { mode: 0o700 })
  const script = `const { Database } = await import('bun:sqlite')
    const db = new Database(${JSON.stringify(path)}, { create: true })
    db.run('BEGIN IMMEDIATE')
    console.log('held')
    Bun.sleepSync(300)
    db.run('COMMIT')`
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe' })
  await child.stdout.getReader().read()
  expect(trouble(open())).toBe('it opened')
  expect(await child.exited).toBe(0)
})

test('an error that is not about storage is left to be thrown', () => {
  expect(storageFailure(path, new Error('bug'))).toBeUndefined()
  expect(storageFailure(path, 'SQLITE_FULL')).toBeUndefined()
  expect(storageFailure(path, Object.assign(new Error('x'), { code: 'SQLITE_CONSTRAINT', errno: 19 }))).toBeUndefined()
})

test('folder and files belong to the owner alone, also when they did not before', () => {
  use((memory) => {
    memory.journal.append(note())
    for (const file of [path, `${path}-wal`, `${path}-shm`]) expect(statSync(file).mode & 0o777).toBe(0o600)
  })
  expect(statSync(join(folder, 'home')).mode & 0o777).toBe(0o700)
  chmodSync(path, 0o644)
  use(() => expect(statSync(path).mode & 0o777).toBe(0o600))
  expect(heard).toContain('database permissions narrowed')
})

test('every commit is synced: WAL, synchronous FULL', () => {
  const opened = openStore({ path, log: () => {} })
  if (!opened.ok) throw new Error(opened.failure.message)
  const { store } = opened
  expect(store.sql('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' })
  expect(store.sql('PRAGMA synchronous').get()).toEqual({ synchronous: 2 })
  expect(store.sql('PRAGMA busy_timeout').get()).toEqual({ timeout: 5000 })
  store.close()
})

test('a transaction that throws leaves nothing, and one within another joins it', () => {
  use((memory) => {
    expect(() =>
      memory.transaction(() => {
        memory.journal.append(note())
        memory.transaction(() => memory.journal.append(note()))
        throw new Error('stop')
      }),
    ).toThrow('stop')
    expect(memory.journal.events('r')).toEqual([])
    memory.transaction(() => memory.transaction(() => memory.journal.append(note())))
    expect(memory.journal.events('r')).toHaveLength(1)
  })
})

test('after closing, the file stands alone', () => {
  use((memory) => memory.journal.append(note()))
  expect(() => statSync(`${path}-wal`)).toThrow('ENOENT')
})

test('who closes a file does not disturb another process that is writing to it', async () => {
  use((memory) => memory.journal.append(note()))
  const child = Bun.spawn([process.execPath, '--config=/dev/null', '--no-env-file', '-e', lateWriter], {
    env: { STORE: path, MODULE: join(import.meta.dir, 'store.ts') },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const said = child.stdout.getReader()
  await said.read()
  use((memory) => memory.journal.append(note()))
  child.stdin.end()
  expect(await child.exited).toBe(0)
  use((memory) => expect(memory.journal.events('r')).toHaveLength(3))
})

/** Opens the file, waits for the end of its stdin, and writes. */
const lateWriter = `
  const { openStore } = await import(process.env.MODULE)
  const { store } = openStore({ path: process.env.STORE, log: () => {} })
  store.sql('SELECT count(*) FROM journal').get()
  console.log('open')
  await Bun.stdin.text()
  store.write(() => store.sql("INSERT INTO journal(run_id, kind, type, at, body) VALUES ('r', 'note', 'x', 1, '{}')").run())
  store.close()
`

test('eight processes may open, migrate and write a new database at once', async () => {
  const script = `
    const { openMemory } = await import(${JSON.stringify(join(import.meta.dir, 'memory.ts'))})
    const opened = openMemory({ path: ${JSON.stringify(path)}, log: () => {}, now: () => 0 })
    if (!opened.ok) throw new Error(opened.failure.message)
    const run = { ...${JSON.stringify(run)}, runId: 'run-' + process.argv.at(-1) }
    for (let n = 0; n < 20; n++) opened.memory.journal.append({ run, kind: 'note', type: 'x', at: n, body: {} })
    opened.memory.close()`
  const children = Array.from({ length: 8 }, (_, n) => Bun.spawn([process.execPath, '-e', script, String(n)], { stderr: 'pipe' }))
  const ends = await Promise.all(children.map(async (child) => [await child.exited, await child.stderr.text()]))
  expect(ends).toEqual(Array.from({ length: 8 }, () => [0, '']))
  use((memory) =>
    expect(memory.journal.runs({ limit: 99 }).map(({ runId }) => memory.journal.events(runId).length)).toEqual(Array(8).fill(20)),
  )
})

const isRoot = process.getuid?.() === 0
const mount = (target: string, ...options: string[]) => Bun.spawnSync(['mount', ...options, target], { stderr: 'ignore' }).success
const mayMount = isRoot && probe()
if (!mayMount) console.log('not run: full and read-only disks (needs root and mount)')

function probe(): boolean {
  const target = mkdtempSync(join(tmpdir(), 'braidclaw-mount-'))
  const mounted = mount(target, '-t', 'tmpfs', '-o', 'size=16k', 'tmpfs')
  if (mounted) Bun.spawnSync(['umount', target])
  rmSync(target, { recursive: true })
  return mounted
}

function onSmallDisk(body: (home: string) => void): void {
  const home = join(folder, 'home')
  mkdirSync(home)
  try {
    expect(mount(home, '-t', 'tmpfs', '-o', 'size=700k', 'tmpfs')).toBe(true)
    body(home)
  } finally {
    Bun.spawnSync(['umount', home])
  }
}

test.if(mayMount)('on a full disk a write fails as full, what was there stays, and it goes on when there is room', () => {
  onSmallDisk((home) => {
    const ballast = join(home, 'ballast')
    writeFileSync(ballast, 'x'.repeat(200_000))
    use((memory) => {
      let written = 0
      const fill = () => {
        for (; written < 1000; written += 1) memory.journal.append(note({ text: 'x'.repeat(10_000) }))
      }
      let failure: unknown
      try {
        fill()
      } catch (error) {
        failure = memory.failureOf(error)?.code
      }
      expect(failure).toBe('full')
      expect(memory.journal.events('r')).toHaveLength(written)
      rmSync(ballast)
      memory.journal.append(note())
      expect(memory.journal.events('r')).toHaveLength(written + 1)
    })
  })
})

test.if(mayMount)('on a read-only disk opening fails as read-only', () => {
  onSmallDisk((home) => {
    use((memory) => memory.journal.append(note()))
    expect(mount(home, '-o', 'remount,ro')).toBe(true)
    expect(trouble(open())).toStartWith('read_only: ')
  })
})

test('in a folder that may not be written opening fails with a reason', () => {
  mkdirSync(join(folder, 'home'))
  chmodSync(join(folder, 'home'), 0o555)
  chmodSync(folder, 0o755)
  expect(trouble(asNobody(open))).toStartWith('unreadable: ')
})

/** Root may write anywhere, so the test runs as another user for a moment. */
function asNobody<T>(use: () => T): T {
  if (isRoot) process.seteuid?.(65534)
  try {
    return use()
  } finally {
    if (isRoot) process.seteuid?.(0)
  }
}
