import { expect, test } from 'bun:test'
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTrust } from './trust.ts'

function fresh() {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'config-trust-')))
  for (const folder of ['project/sub', 'project-other', 'evil']) mkdirSync(join(dir, folder), { recursive: true })
  const file = join(dir, 'home', 'trusted_folders')
  return { dir, file, trust: createTrust(file) }
}

test('nothing is trusted at first, and what does not exist never is', () => {
  const { dir, trust } = fresh()
  expect([trust.isTrusted(dir), trust.isTrusted('/'), trust.isTrusted(join(dir, 'none')), trust.list().folders]).toEqual([
    false,
    false,
    false,
    [],
  ])
})

test('a neighbour with the same beginning is not trusted, a folder below is', () => {
  const { dir, trust } = fresh()
  expect(trust.add(join(dir, 'project'))).toEqual({ ok: true, folder: join(dir, 'project'), changed: true })
  expect(['project', 'project/sub', 'project-other', '.'].map((name) => trust.isTrusted(join(dir, name)))).toEqual([
    true,
    true,
    false,
    false,
  ])
})

test('a link inside a trusted folder to one outside is not trusted; a link to a trusted one is', () => {
  const { dir, trust } = fresh()
  symlinkSync(join(dir, 'evil'), join(dir, 'project', 'link'))
  symlinkSync(join(dir, 'project'), join(dir, 'alias'))
  expect(trust.add(join(dir, 'alias'))).toMatchObject({ folder: join(dir, 'project') })
  expect([trust.isTrusted(join(dir, 'project', 'link')), trust.isTrusted(join(dir, 'alias', 'sub'))]).toEqual([false, true])
})

test('the root, a file, a missing folder and a name with a line break cannot be trusted', () => {
  const { dir, trust, file } = fresh()
  writeFileSync(join(dir, 'plain'), '')
  mkdirSync(join(dir, 'a\nb'))
  for (const path of ['/', join(dir, 'plain'), join(dir, 'none'), join(dir, 'a\nb')]) expect(trust.add(path).ok).toBe(false)
  expect(() => statSync(file)).toThrow()
})

test('a list that others may write trusts nothing, says so, and takes no more', () => {
  const { dir, trust, file } = fresh()
  trust.add(join(dir, 'project'))
  expect(statSync(file).mode & 0o777).toBe(0o600)
  chmodSync(file, 0o620)
  expect(trust.isTrusted(join(dir, 'project'))).toBe(false)
  expect(trust.list().notices[0]).toContain('no folder is trusted: others may write')
  expect(trust.add(join(dir, 'evil'))).toMatchObject({ ok: false, why: expect.stringContaining('chmod 600') })
})

test('odd lines trust nothing and are mentioned; a torn last line swallows nothing', () => {
  const { dir, trust, file } = fresh()
  trust.add(join(dir, 'project'))
  appendFileSync(file, `\n# a comment\nrelative\n${join(dir, 'ev')}`)
  expect(trust.list().notices).toEqual([`${file}: "relative" is not an absolute path and trusts nothing`])
  trust.add(join(dir, 'project-other'))
  expect(['project', 'project-other', 'evil'].map((name) => trust.isTrusted(join(dir, name)))).toEqual([true, true, false])
})

test('adding twice keeps one line; removing takes it, also when the folder is gone', () => {
  const { dir, trust, file } = fresh()
  const [a, b] = [join(dir, 'project'), join(dir, 'evil')]
  trust.add(a)
  trust.add(b)
  expect(trust.add(a)).toMatchObject({ changed: false })
  rmSync(b, { recursive: true })
  expect([trust.remove(b), trust.remove(b)]).toEqual([
    { ok: true, folder: b, changed: true },
    { ok: true, folder: b, changed: false },
  ])
  expect(readFileSync(file, 'utf8')).toBe(`${a}\n`)
})

test('a list that is a folder is a sentence, not a throw', () => {
  const { dir, trust, file } = fresh()
  mkdirSync(file, { recursive: true })
  expect(trust.isTrusted(dir)).toBe(false)
  expect(trust.list().notices[0]).toContain('is a folder')
  expect(trust.add(dir).ok).toBe(false)
})
