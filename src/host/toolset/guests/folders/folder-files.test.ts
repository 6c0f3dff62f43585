/** Tests what a folder of a plugin or skill may hold, and that a copy is exactly what was read. */

import { expect, test } from 'bun:test'
import {
  chmodSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { copyFolder, readFolderFiles } from './folder-files.ts'

function stage() {
  const root = mkdtempSync(join(tmpdir(), 'braidclaw-plugin-files-'))
  const folder = join(root, 'plugin')
  const put = (path: string, text = 'x', mode = 0o644) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
    chmodSync(join(folder, path), mode)
  }
  put('manifest.toml')
  put('bin/run', '#!/bin/sh\n', 0o755)
  const why = () => {
    const read = readFolderFiles(folder)
    return read.ok ? 'fine' : read.why
  }
  return { root, folder, put, why, [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }) }
}

test('every file counts: its path, its content, whether it is a program, and where a link leads', () => {
  using at = stage()
  const digest = () => {
    const read = readFolderFiles(at.folder)
    if (!read.ok) throw new Error(read.why)
    return read.digest
  }
  const seen = new Set([digest()])
  const changes = [
    () => at.put('manifest.toml', 'y'),
    () => chmodSync(join(at.folder, 'manifest.toml'), 0o755),
    () => at.put('lib/new'),
    () => symlinkSync('manifest.toml', join(at.folder, 'link')),
    () => {
      rmSync(join(at.folder, 'link'))
      symlinkSync('bin/run', join(at.folder, 'link'))
    },
    () => rmSync(join(at.folder, 'lib/new')),
  ]
  for (const change of changes) {
    change()
    expect(seen.has(digest())).toBe(false)
    seen.add(digest())
  }
})

test('links that lead out, special files, set-user-ID programs, deep folders and too many files are refused with a sentence', () => {
  using at = stage()
  const trial = (make: () => void, remove: string) => {
    make()
    const why = at.why()
    rmSync(join(at.folder, remove), { recursive: true, force: true })
    expect(at.why()).toBe('fine')
    return why
  }
  writeFileSync(join(at.root, 'secret'), 's')
  const link = (target: string) => trial(() => symlinkSync(target, join(at.folder, 'l')), 'l')
  expect(link('/etc/passwd')).toBe('the link "l" leads to "/etc/passwd", out of its folder; replace it by a copy')
  expect(link('../secret')).toContain('out of its folder')
  expect(link('nowhere')).toContain('which does not exist')
  mkdirSync(join(at.folder, 'deep'))
  symlinkSync('../bin', join(at.folder, 'deep/up'))
  // By its letters this is a path of the plugin.
  expect(link('deep/up/../../secret')).toContain('out of its folder')
  expect(trial(() => at.put('su', '', 0o4755), 'su')).toContain('"su" is a set-user-ID or set-group-ID program')
  expect(trial(() => Bun.spawnSync(['mkfifo', join(at.folder, 'pipe')]), 'pipe')).toContain('"pipe" is neither a file')
  expect(trial(() => at.put(`${'d/'.repeat(40)}f`), 'd')).toContain('nested more than 16 deep')
  const many = () => {
    for (let n = 0; n < 5_001; n++) at.put(`many/${n}`, '')
  }
  expect(trial(many, 'many')).toBe('it has more than 5,000 files, which are the limit')
})

test('a copy has the same digest, and a file that changes meanwhile leaves no copy', () => {
  using at = stage()
  symlinkSync('bin/run', join(at.folder, 'link'))
  const read = readFolderFiles(at.folder)
  if (!read.ok) throw new Error(read.why)
  const to = join(at.root, 'copies', 'one')
  copyFolder(at.folder, to, read.digest)
  expect(readFolderFiles(to)).toMatchObject({ ok: true, digest: read.digest })
  expect([lstatSync(join(to, 'link')).isSymbolicLink(), lstatSync(join(to, 'bin/run')).mode & 0o777]).toEqual([true, 0o755])
  at.put('manifest.toml', 'other')
  expect(() => copyFolder(at.folder, join(at.root, 'copies', 'two'), read.digest)).toThrow('changed while they were copied')
  expect(readdirSync(join(at.root, 'copies'))).toEqual(['one'])
  expect(readFileSync(join(to, 'manifest.toml'), 'utf8')).toBe('x')
  expect(existsSync(join(at.root, 'copies', 'two'))).toBe(false)
})

test('the flags with which a file is read open no link, and wait for no FIFO', () => {
  using at = stage()
  const flag = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  symlinkSync('manifest.toml', join(at.folder, 'link'))
  expect(() => readFileSync(join(at.folder, 'link'), { flag })).toThrow('ELOOP')
  Bun.spawnSync(['mkfifo', join(at.folder, 'fifo')])
  expect(readFileSync(join(at.folder, 'fifo'), { flag })).toHaveLength(0)
})
