import { afterEach, beforeEach, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createKey, type ReadKey, readKey } from './key.ts'

let folder = ''
let path = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'braidclaw-key-'))
  path = join(folder, 'receipt.key')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const message = (read: ReadKey) => (read.ok ? 'a key' : read.failure.message)

test('a missing key is reported as missing and not made', () => {
  expect(readKey(path)).toMatchObject({ ok: false, missing: true, failure: { code: 'key' } })
  expect(readdirSync(folder)).toEqual([])
})

test('a key that group or others may read is refused, with the command that helps', () => {
  for (const mode of [0o640, 0o604, 0o620, 0o601]) {
    writeFileSync(path, `${'ab'.repeat(32)}\n`)
    chmodSync(path, mode)
    expect(message(readKey(path))).toContain(`mode ${mode.toString(8)}); run: chmod 600 "${path}"`)
  }
})

test('what is no key is refused: too short, not hex, empty, a folder, a link', () => {
  for (const text of ['', 'ab\n', `${'zz'.repeat(32)}\n`, `${'ab'.repeat(33)}\n`, `${'AB'.repeat(32)}\n`]) {
    writeFileSync(path, text, { mode: 0o600 })
    expect(message(readKey(path))).toContain('does not contain a receipt key')
  }
  rmSync(path)
  mkdirSync(path, { mode: 0o700 })
  expect(readKey(path)).toMatchObject({ ok: false, missing: false })
  rmSync(path, { recursive: true })
  writeFileSync(join(folder, 'real'), `${'ab'.repeat(32)}\n`, { mode: 0o600 })
  symlinkSync(join(folder, 'real'), path)
  expect(readKey(path)).toMatchObject({ ok: false, missing: false })
})

test('a new key is 32 random bytes that only the owner can read', () => {
  const made = createKey(path)
  expect(made.ok && made.key.length).toBe(32)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readFileSync(path, 'latin1')).toMatch(/^[0-9a-f]{64}\n$/)
  expect(readKey(path)).toEqual(made)
  expect(readdirSync(folder)).toEqual(['receipt.key'])
  rmSync(path)
  expect(createKey(path)).not.toEqual(made)
})

test('an existing key is never replaced', () => {
  writeFileSync(path, `${'ab'.repeat(32)}\n`, { mode: 0o600 })
  expect(createKey(path)).toEqual({ ok: true, key: new Uint8Array(32).fill(0xab) })
  expect(readFileSync(path, 'latin1')).toBe(`${'ab'.repeat(32)}\n`)
  expect(readdirSync(folder)).toEqual(['receipt.key'])
})
