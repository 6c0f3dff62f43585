import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isKey, readKeys } from './keys-file.ts'
import { keepKey } from './text/write-files.ts'

let folder = ''
const path = () => join(folder, 'home', 'keys.env')
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'braidclaw-keys-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function write(text: string, mode = 0o600): void {
  mkdirSync(join(folder, 'home'), { recursive: true })
  writeFileSync(path(), text)
  chmodSync(path(), mode)
}

describe('a file that is not for its owner alone is not used', () => {
  test.each([0o640, 0o604, 0o660, 0o602])('mode %o', (mode) => {
    write('OPENAI_API_KEY=sk-planted\n', mode)
    expect(readKeys(path())).toEqual({ keys: {}, problem: `${path()} is not used: others may read or change it; run: chmod 600 ${path()}` })
  })

  test('a link, a folder', () => {
    write('OPENAI_API_KEY=sk-planted\n')
    symlinkSync(path(), join(folder, 'link'))
    for (const other of [join(folder, 'link'), folder])
      expect(readKeys(other)).toMatchObject({ keys: {}, problem: expect.stringContaining('not a regular file') })
  })
})

test('no file: no keys, and no complaint', () => {
  expect(readKeys(path())).toEqual({ keys: {} })
})

test('a line that is no assignment is named without what stands there', () => {
  write('A_KEY=1\nsk-planted secret\n')
  expect(readKeys(path())).toEqual({ keys: { A_KEY: '1' }, problem: expect.stringMatching(/keys\.env:2: this line is not an assignment/) })
})

test.each(['PATH', 'LD_PRELOAD', 'BRAIDCLAW_AUTONOMY', 'openai_api_key'])('%s is no key, and is not set', (name) => {
  write(`A_KEY=1\n${name}=x\n`)
  expect(readKeys(path())).toEqual({ keys: { A_KEY: '1' }, problem: expect.stringContaining('keys.env:2: this line sets no key') })
})

test('what is kept is read again, for its owner alone; another of that name takes its place, and the rest stays', () => {
  keepKey(path(), 'A_KEY', 'sk-1"$`\\')
  expect(readKeys(path())).toEqual({ keys: { A_KEY: 'sk-1"$`\\' } })
  writeFileSync(path(), `${readFileSync(path(), 'utf8')}# mine\nB_KEY=2`)
  keepKey(path(), 'A_KEY', 'sk-3')
  expect(readKeys(path())).toEqual({ keys: { B_KEY: '2', A_KEY: 'sk-3' } })
  expect(readFileSync(path(), 'utf8')).toContain('\n# mine\nB_KEY=2\n')
  expect([statSync(path()).mode & 0o777, statSync(join(folder, 'home')).mode & 0o777, readdirSync(join(folder, 'home'))]).toEqual([
    0o600,
    0o700,
    ['keys.env'],
  ])
})

test.each(['', 'a b', 'a\nb', "a'b", 'ä', 'a\u001b[0m'])('%j is no key', (text) => {
  expect(isKey(text)).toBe(false)
})

test('a file that cannot be read is not replaced, and a removed key goes in every spelling', () => {
  mkdirSync(join(path(), '..'), { recursive: true })
  writeFileSync(path(), new Uint8Array([0xff, 0xfe, 0x41]))
  expect(() => keepKey(path(), 'A_KEY', 'sk-1')).toThrow('is not valid UTF-8')
  expect(readFileSync(path()).length).toBe(3)
  writeFileSync(path(), "# mine\nexport A_KEY='1'\n A_KEY=2\nBA_KEY=3\n")
  keepKey(path(), 'A_KEY')
  expect(readFileSync(path(), 'utf8')).toBe('# mine\nBA_KEY=3\n')
})
