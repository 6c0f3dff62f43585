/** Tests archives of strangers: what they may hold, and that nothing is written outside the folder. */

import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { type TarMember, tarOf } from './tar.fixture.ts'
import { unpackTar } from './unpack-tar.ts'

function unpacked(tar: Buffer, use: (folder: string, root: string) => unknown = () => undefined) {
  const root = mkdtempSync(join(tmpdir(), 'braidclaw-tar-'))
  const folder = join(root, 'to')
  mkdirSync(folder)
  try {
    unpackTar(tar, folder)
    return use(folder, root)
  } catch (error) {
    expect(readdirSync(root)).toEqual(['to'])
    return error instanceof Error ? error.message : error
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

const members = (...all: readonly TarMember[]) => unpacked(tarOf(all))

test('files, programs, folders, long names and links inside are unpacked without the first folder', () => {
  const long = `package/${'deep/'.repeat(30)}file.txt`
  const tar = tarOf([
    { name: 'package/', type: '5' },
    { name: 'package/run', text: 'x', mode: 0o755 },
    { name: long, text: 'long' },
    { name: 'package/link', type: '2', link: 'run' },
  ])
  const found = unpacked(tar, (folder) => [
    readFileSync(join(folder, long.slice('package/'.length)), 'utf8'),
    statSync(join(folder, 'run')).mode & 0o777,
    readlinkSync(join(folder, 'link')),
  ])
  expect(found).toEqual(['long', 0o700, 'run'])
})

test('an archive of the real tar is read as tar reads it', () => {
  const root = mkdtempSync(join(tmpdir(), 'braidclaw-real-tar-'))
  mkdirSync(join(root, 'p/a'), { recursive: true })
  writeFileSync(join(root, 'p/a/b.txt'), 'b'.repeat(1_000))
  const { stdout } = Bun.spawnSync(['tar', '--format=pax', '-cf', '-', 'p'], { cwd: root })
  rmSync(root, { recursive: true })
  expect(unpacked(Buffer.from(stdout), (folder) => readFileSync(join(folder, 'a/b.txt'), 'utf8'))).toBe('b'.repeat(1_000))
})

test('paths that lead out, set-user-ID programs, hard links, devices and too many files are refused with a sentence', () => {
  expect(members({ name: 'package/../../out' })).toContain('leads out of it')
  expect(members({ name: '/etc/out' })).toContain('leads out of it')
  expect(members({ name: 'package/su', mode: 0o4755 })).toContain('is a set-user-ID or set-group-ID program')
  for (const type of ['1', '3', '4', '6', 'S'])
    expect(members({ name: 'package/odd', type, link: '/etc/passwd' })).toContain('is neither a file')
  expect(members(...Array.from({ length: 5_001 }, (_, n) => ({ name: `package/${n}` })))).toContain('more than 5,000 files')
  expect(members({ name: 'package/a' }, { name: 'package/a' })).toContain('EEXIST')
})

test('no file is written through a link that came before it', () => {
  const target = mkdtempSync(join(tmpdir(), 'braidclaw-target-'))
  const result = members({ name: 'package/a', type: '2', link: target }, { name: 'package/a/out', text: 'x' })
  expect([result, existsSync(join(target, 'out'))]).toEqual([expect.stringContaining('EEXIST'), false])
  rmSync(target, { recursive: true })
})

test('no bytes make it hang or write outside', () => {
  const whole = tarOf([{ name: 'package/run', text: 'hello' }])
  fc.assert(
    fc.property(fc.nat(whole.length - 1), fc.nat(255), (at, byte) => {
      const tar = Buffer.from(whole)
      tar[at] = byte
      unpacked(tar, (_folder, root) => expect(readdirSync(root)).toEqual(['to']))
    }),
    { numRuns: 300 },
  )
})
