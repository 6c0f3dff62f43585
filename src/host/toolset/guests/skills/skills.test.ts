/** Tests which skills may be used, and from which folder their programs run: denials first. */

import { expect, test } from 'bun:test'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { place } from '../../../../../test/support/host.ts'
import { createTrust } from '../../../../config/trust.ts'
import { openSkills } from './skills.ts'

async function stage() {
  const at = place()
  const open = () => openSkills(at.setup(), at.cwd)
  const put = (folder: string, name: string, body = 'Run `sh scripts/run.sh`.') => {
    mkdirSync(join(folder, 'scripts'), { recursive: true })
    writeFileSync(join(folder, 'SKILL.md'), `---\nname: ${name}\ndescription: Does it.\n---\n${body}\n`)
    writeFileSync(join(folder, 'scripts/run.sh'), '#!/bin/sh\necho ran\n')
    chmodSync(join(folder, 'scripts/run.sh'), 0o755)
    return folder
  }
  const skills = await open()
  return { ...at, open, put, skills, from: join(at.cwd, 'from'), added: (name: string) => join(at.home, 'skills/added', name) }
}

test('an added skill is not used before an approval, and an approval is to exactly its files', async () => {
  using at = await stage()
  await at.skills.install(at.put(at.from, 'notes'), at.from)
  const folder = at.added('notes')
  expect(at.skills.skillState(folder)).toMatchObject({ origin: 'added', state: 'not approved', usable: false })
  expect(at.skills.skillState(folder).why).toContain('braidclaw skill approve notes')
  expect(at.skills.skillScripts(folder).ok).toBe(false)
  await expect(at.skills.approve('notes', 'f'.repeat(64))).rejects.toThrow('changed while it was shown')
  expect(at.skills.skillState(folder).usable).toBe(false)
  await at.skills.approve('notes', at.skills.sound('notes').files.digest)
  expect(at.skills.skillState(folder)).toEqual({ origin: 'added', state: 'approved', usable: true })
  expect(statSync(join(at.home, 'skills/approved.json')).mode & 0o777).toBe(0o600)
})

test('a changed, added or removed file disables it; programs run only from a private copy of the approved files', async () => {
  using at = await stage()
  await at.skills.install(at.put(at.from, 'notes'), at.from)
  const folder = at.added('notes')
  await at.skills.approve('notes', at.skills.sound('notes').files.digest)
  const scripts = at.skills.skillScripts(folder)
  if (!scripts.ok) throw new Error(scripts.why)
  expect(scripts.folder).toContain('/run/skills/')
  appendFileSync(join(scripts.folder, 'scripts/run.sh'), 'echo changed by a program without a sandbox\n')
  expect(at.skills.skillScripts(folder)).toEqual(scripts)
  expect(readFileSync(join(scripts.folder, 'scripts/run.sh'), 'utf8')).toBe('#!/bin/sh\necho ran\n')
  const original = readFileSync(join(folder, 'SKILL.md'))
  for (const change of [
    () => appendFileSync(join(folder, 'SKILL.md'), 'and more\n'),
    () => writeFileSync(join(folder, 'new.md'), 'x'),
    () => chmodSync(join(folder, 'scripts/run.sh'), 0o644),
    () => rmSync(join(folder, 'scripts/run.sh')),
  ]) {
    change()
    expect(at.skills.skillState(folder)).toMatchObject({ state: 'changed', usable: false })
    expect(at.skills.skillScripts(folder).ok).toBe(false)
    at.put(folder, 'notes')
    rmSync(join(folder, 'new.md'), { force: true })
    writeFileSync(join(folder, 'SKILL.md'), original)
    expect(at.skills.skillState(folder).usable).toBe(true)
  }
  const found = await (await at.open()).findAll()
  expect(found.skills.map(({ skill, usable }) => [skill.name, usable])).toEqual([['notes', true]])
})

test("a project's skill is data until the folder is trusted, and its programs wait for an approval of their own", async () => {
  using at = await stage()
  const folder = at.put(join(at.cwd, '.agents/skills/notes'), 'notes')
  const name = at.skills.nameOf(folder)
  expect(at.skills.skillState(folder)).toMatchObject({ origin: 'project', state: 'not trusted', usable: false })
  await at.skills.approve(name, at.skills.sound(name).files.digest)
  expect(at.skills.skillScripts(folder)).toMatchObject({ ok: false })
  await at.skills.remove(name)
  expect(existsSync(folder)).toBe(true)
  createTrust(at.setup().paths.trustedFolders).add(at.cwd)
  expect(at.skills.skillState(folder)).toEqual({ origin: 'project', state: 'trusted', usable: true })
  expect(at.skills.skillScripts(folder)).toMatchObject({ ok: false, why: expect.stringContaining('is not approved') })
  await at.skills.approve(name, at.skills.sound(name).files.digest)
  expect(at.skills.skillScripts(folder)).toMatchObject({ ok: true, folder: expect.stringContaining('/run/skills/') })
  appendFileSync(join(folder, 'scripts/run.sh'), 'echo more\n')
  expect(at.skills.skillState(folder).usable).toBe(true)
  expect(at.skills.skillScripts(folder)).toMatchObject({ ok: false, why: expect.stringContaining('is changed') })
})

test("the user's own skills are used as they are, and neither approved nor removed", async () => {
  using at = await stage()
  for (const folder of [join(at.home, 'skills/mine'), join(at.home, '../.agents/skills/mine')]) {
    at.put(folder, 'mine')
    expect(at.skills.skillState(folder)).toEqual({ origin: 'own', state: 'own', usable: true })
    expect(at.skills.skillScripts(folder).ok).toBe(true)
    const name = at.skills.nameOf(folder)
    expect(() => at.skills.remove(name)).toThrow('is your own skill')
    expect(() => at.skills.approve(name, 'x')).toThrow('is your own skill')
    expect(existsSync(folder)).toBe(true)
  }
})

test('a folder that is not among the skills is not used, whoever wrote it', async () => {
  using at = await stage()
  const folder = at.put(join(at.home, '../downloads/notes'), 'notes')
  expect(at.skills.skillState(folder)).toMatchObject({ origin: 'elsewhere', usable: false, why: `run: braidclaw skill add ${folder}` })
  expect(at.skills.skillScripts(folder).ok).toBe(false)
  symlinkSync(folder, at.put(join(at.cwd, '.agents/skills/own'), 'own').replace('/own', '/link'))
  expect(at.skills.skillState(join(at.cwd, '.agents/skills/link')).usable).toBe(false)
})

test('a link to an added skill is the added skill, and a damaged book approves nothing', async () => {
  using at = await stage()
  await at.skills.install(at.put(at.from, 'notes'), at.from)
  symlinkSync(at.added('notes'), join(at.home, 'skills/own'))
  expect(at.skills.skillState(join(at.home, 'skills/own')).usable).toBe(false)
  await at.skills.approve('notes', at.skills.sound('notes').files.digest)
  writeFileSync(join(at.home, 'skills/approved.json'), '{"notes": 1}')
  expect(at.skills.skillState(at.added('notes'))).toMatchObject({ state: 'broken', usable: false })
  expect(at.skills.skillScripts(at.added('notes')).ok).toBe(false)
  rmSync(join(at.home, 'skills/approved.json'))
  expect(at.skills.skillState(at.added('notes'))).toMatchObject({ state: 'not approved', usable: false })
})

const tooMany = (folder: string) => {
  for (let at = 0; at < 5_001; at += 1) writeFileSync(join(folder, `${at}.md`), '')
}

test.each([
  ['a name that leads out', '../../evil', () => {}, 'is not made of a-z'],
  ['a name that is a path', '/etc/cron.d/x', () => {}, 'is not made of a-z'],
  ['a hidden name', '.evil', () => {}, 'is not made of a-z'],
  ['a link out', 'x', (folder: string) => symlinkSync('/etc/passwd', join(folder, 'l')), 'out of its folder'],
  ['a link to the folder above', 'x', (folder: string) => symlinkSync('..', join(folder, 'l')), 'out of its folder'],
  ['a set-user-ID program', 'x', (folder: string) => chmodSync(join(folder, 'scripts/run.sh'), 0o4755), 'set-user-ID'],
  [
    'a body of 10 MB',
    'x',
    (folder: string) => appendFileSync(join(folder, 'SKILL.md'), 'a'.repeat(10_485_760)),
    'at most 262,144 are read',
  ],
  ['too many files', 'x', tooMany, 'more than 5,000 files'],
  ['YAML that cannot be read', 'x\n  - : [', () => {}, 'YAML'],
  ['a FIFO', 'x', (folder: string) => void Bun.spawnSync(['mkfifo', join(folder, 'f')]), 'neither a file, a folder nor a link'],
  ['no SKILL.md', 'x', (folder: string) => rmSync(join(folder, 'SKILL.md')), 'SKILL.md'],
])('%s is refused with a sentence, and nothing is installed', async (_what, name, spoil, says) => {
  using at = await stage()
  at.put(at.from, name)
  spoil(at.from)
  await expect(at.skills.install(at.from, at.from)).rejects.toThrow(says)
  expect(existsSync(join(at.home, 'skills/added')) ? readdirSync(join(at.home, 'skills/added')) : []).toEqual([])
  const { suspicious, faults } = at.skills.review(at.from)
  if (!says.includes('a-z')) expect([...suspicious, ...faults]).not.toEqual([])
})
