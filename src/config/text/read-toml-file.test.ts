import { expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { explainErrno, maxConfigBytes, readConfigFile } from './read-toml-file.ts'

const dir = () => mkdtempSync(join(tmpdir(), 'config-read-'))
const file = (bytes: string | Uint8Array) => {
  const path = join(dir(), 'config.toml')
  writeFileSync(path, bytes)
  return path
}

test('invalid UTF-8 is refused with its line', () => {
  expect(readConfigFile(file(Buffer.concat([Buffer.from('a = 1\nb = "'), Buffer.from([0xc3, 0x28]), Buffer.from('"\n')])))).toEqual({
    state: 'unusable',
    why: 'is not valid UTF-8; save it as UTF-8 text',
    line: 2,
  })
  expect(readConfigFile(file(new Uint8Array([0x61, 0xff])))).toMatchObject({ state: 'unusable', line: 1 })
})

test('a file of 10 MB is refused unread; the largest allowed is read', () => {
  expect(readConfigFile(file(new Uint8Array(10_000_000)))).toMatchObject({ why: 'has 10000000 bytes; the limit is 1048576' })
  expect(readConfigFile(file('#'.repeat(maxConfigBytes))).state).toBe('text')
})

test('a folder and a FIFO are no files, and nothing waits for a writer', () => {
  const folder = dir()
  const fifo = join(folder, 'fifo')
  Bun.spawnSync(['mkfifo', fifo])
  expect(readConfigFile(folder)).toMatchObject({ why: expect.stringContaining('is a folder') })
  expect(readConfigFile(fifo)).toEqual({ state: 'unusable', why: 'is not a regular file' })
})

test('a missing file is no fault, a file on the way to it is', () => {
  expect(readConfigFile(join(dir(), 'none'))).toEqual({ state: 'missing' })
  expect(readConfigFile(join(file(''), 'x'))).toMatchObject({ why: expect.stringContaining('ENOTDIR') })
})

test('a file that anybody may change is read, and marked', () => {
  const path = file('a = 1')
  expect(readConfigFile(path)).toEqual({ state: 'text', text: 'a = 1', worldWritable: false })
  chmodSync(path, 0o666)
  expect(readConfigFile(path)).toMatchObject({ worldWritable: true })
})

test('another user is told that permission is denied', () => {
  const folder = dir()
  mkdirSync(join(folder, 'closed'), { mode: 0o000 })
  const path = join(folder, 'closed', 'config.toml')
  // Root may read everything, so the folder then only looks empty.
  expect(readConfigFile(path)).toEqual(
    process.getuid?.() === 0 ? { state: 'missing' } : { state: 'unusable', why: expect.stringContaining('permission denied') },
  )
  expect(explainErrno('EACCES')).toBe('permission denied; check the owner and the mode with "ls -ld" (EACCES)')
  expect(explainErrno('EWEIRD')).toBe('EWEIRD')
})
