import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { prepareFile } from './database-file.ts'
import { openStore } from './store.ts'

let folder = ''
let path = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'braidclaw-file-'))
  path = join(folder, 'home', 'memory.sqlite')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const warned: string[] = []
const prepare = () => prepareFile(path, (_, event) => warned.push(event))
const modeOf = (name: string) => (statSync(name).mode & 0o777).toString(8)

/**
 * Returns how many locks this process holds on the file. The list of the whole system, /proc/locks, shows a lock twice or not at all while
 * other processes take theirs; a descriptor's own list does not.
 */
function locksOn(name: string): number {
  const file = `:${statSync(name).ino} `
  const lines = readdirSync('/proc/self/fd').flatMap((fd) => {
    const info = `/proc/self/fdinfo/${fd}`
    return existsSync(info) ? readFileSync(info, 'utf8').split('\n') : []
  })
  return new Set(lines.filter((line) => line.startsWith('lock:') && line.includes(file)).map((line) => line.replace(/^lock:\s*\d+/, '')))
    .size
}

function open() {
  const opened = openStore({ path, log: () => {} })
  if (!opened.ok) throw new Error(opened.failure.message)
  return opened.store
}

test('a second connection of the same process leaves the locks of the first, whether it opens or closes', () => {
  const first = open()
  first.sql('SELECT count(*) FROM runs').get()
  expect(locksOn(path)).toBe(1)
  const second = open()
  expect(locksOn(path)).toBe(1)
  second.sql('SELECT count(*) FROM runs').get()
  second.close()
  expect(locksOn(path)).toBe(1)
  first.close()
  expect(locksOn(path)).toBe(0)
})

test('others may not read a file that is a folder, a pipe or a link to a folder, but it is refused and keeps its mode', async () => {
  mkdirSync(path, { recursive: true, mode: 0o755 })
  expect(prepare).toThrow('not a regular file')
  expect(modeOf(path)).toBe('755')
  rmSync(path, { recursive: true })
  symlinkSync(folder, path)
  expect(prepare).toThrow('not a regular file')
  rmSync(path)
  expect(Bun.spawnSync(['mkfifo', '-m', '644', path]).exitCode).toBe(0)
  expect(prepare).toThrow('not a regular file')
  expect(modeOf(path)).toBe('644')
  const refused = openStore({ path, log: () => {} })
  expect(refused).toMatchObject({
    ok: false,
    failure: { code: 'unreadable', message: expect.stringContaining('check that it is a file you own') },
  })
})

test('a new file is for its owner alone, and an existing one keeps what it holds', () => {
  prepare()
  expect([modeOf(join(folder, 'home')), modeOf(path)]).toEqual(['700', '600'])
  writeFileSync(path, 'kept')
  prepare()
  expect(readFileSync(path, 'utf8')).toBe('kept')
})

test('a link to a file that does not exist yet is followed, over several links too', () => {
  mkdirSync(join(folder, 'home'))
  symlinkSync('next', path)
  symlinkSync('../elsewhere.sqlite', join(folder, 'home', 'next'))
  prepare()
  expect(modeOf(join(folder, 'elsewhere.sqlite'))).toBe('600')
  open().close()
  expect(existsSync(join(folder, 'elsewhere.sqlite'))).toBe(true)
})

test('links that go round in circles are said, not followed for ever', () => {
  mkdirSync(join(folder, 'home'))
  symlinkSync('memory.sqlite', path)
  expect(prepare).toThrow('ELOOP')
})
