/** Tests what of a home's plugins is approved, and that nothing else ever is. */

import { expect, test } from 'bun:test'
import { appendFileSync, chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { differenceOf } from '../folders/folder-book.ts'
import { openPlugins } from './plugins.ts'

function stage() {
  const root = mkdtempSync(join(tmpdir(), 'braidclaw-plugins-'))
  const home = join(root, 'home')
  mkdirSync(home)
  const put = (folder: string, name: string, version = '0.1.0') => {
    mkdirSync(folder, { recursive: true })
    const tool = `[[tools]]\nname = "${name}"\ndescription = "d"\ncommand = "./run"\nschema = { type = "object" }\n`
    writeFileSync(join(folder, 'manifest.toml'), `name = "${name}"\nversion = "${version}"\ncapabilities = ["tool"]\n${tool}`)
    writeFileSync(join(folder, 'run'), '#!/bin/sh\ncat\n')
    chmodSync(join(folder, 'run'), 0o755)
    return folder
  }
  const plugins = openPlugins(home)
  const { sound } = plugins
  const states = () =>
    openPlugins(home)
      .list()
      .map(({ name, state }) => [name, state])
  return { root, home, put, plugins, sound, states, [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }) }
}

test('a folder that somebody put there is not approved, and a yes is to exactly its files', async () => {
  using at = stage()
  at.put(join(at.home, 'plugins/echo'), 'echo')
  expect(at.states()).toEqual([['echo', 'not approved']])
  expect(at.plugins.list('enabled')).toEqual([])
  await expect(at.plugins.approve('echo', 'f'.repeat(64))).rejects.toThrow('echo changed while it was shown; nothing was approved')
  expect(at.states()).toEqual([['echo', 'not approved']])
  await at.plugins.approve('echo', at.sound('echo').files.digest)
  expect(at.states()).toEqual([['echo', 'approved']])
  expect(statSync(join(at.home, 'plugins/approved.json')).mode & 0o777).toBe(0o600)
})

test('a changed, added or removed file takes the approval away, with the difference; the old file brings it back', async () => {
  using at = stage()
  const folder = at.put(join(at.home, 'plugins/echo'), 'echo')
  await at.plugins.approve('echo', at.sound('echo').files.digest)
  const copy = at.plugins.copyOf(folder, at.sound('echo').files)
  appendFileSync(join(folder, 'run'), 'rm -rf /\n')
  writeFileSync(join(folder, 'new.py'), 'x')
  expect(at.states()).toEqual([['echo', 'changed']])
  const set = differenceOf(at.plugins, at.sound('echo'))
  expect(set?.changes.map(({ path, before, after }) => [path, before !== undefined, after !== undefined])).toEqual([
    ['new.py', false, true],
    ['run', true, true],
  ])
  const [, run] = set?.changes ?? []
  if (set === undefined || run === undefined) throw new Error('no difference')
  expect([set.content(run, 'before', 99), set.content(run, 'after', 99)].map((bytes) => Buffer.from(bytes ?? []).toString())).toEqual([
    '#!/bin/sh\ncat\n',
    '#!/bin/sh\ncat\nrm -rf /\n',
  ])
  rmSync(join(folder, 'new.py'))
  writeFileSync(join(folder, 'run'), '#!/bin/sh\ncat\n')
  expect(at.states()).toEqual([['echo', 'approved']])
  appendFileSync(join(copy, 'run'), 'changed by a plugin that ran without a sandbox\n')
  expect(readFileSync(join(at.plugins.copyOf(folder, at.sound('echo').files), 'run'), 'utf8')).toBe('#!/bin/sh\ncat\n')
})

test('disabled it stays approved, removed it leaves nothing', async () => {
  using at = stage()
  at.put(join(at.home, 'plugins/echo'), 'echo')
  await expect(at.plugins.enable('echo', true)).rejects.toThrow('echo is not approved; run: braidclaw plugin approve echo')
  await at.plugins.approve('echo', at.sound('echo').files.digest)
  await at.plugins.enable('echo', false)
  expect([at.states(), at.plugins.list('enabled')]).toEqual([[['echo', 'disabled']], []])
  await at.plugins.enable('echo', true)
  expect(at.states()).toEqual([['echo', 'approved']])
  await at.plugins.remove('echo')
  expect([at.states(), readdirSync(join(at.home, 'plugins')), readdirSync(join(at.home, 'run/plugins'))]).toEqual([
    [],
    ['approved.json'],
    [],
  ])
  expect(() => at.plugins.find('ecko')).toThrow('no plugin "ecko"; there are none in')
})

test('an installation copies, and a second one of that name changes nothing', async () => {
  using at = stage()
  const from = at.put(join(at.root, 'from'), 'echo')
  expect(await at.plugins.install(from, from)).toBe('echo')
  expect([at.states(), at.plugins.find('echo').entry?.source]).toEqual([[['echo', 'not approved']], from])
  await expect(at.plugins.install(from, from)).rejects.toThrow('is there already; run: braidclaw plugin update echo')
  rmSync(join(from, 'run'))
  await expect(at.plugins.install(from, 'it')).rejects.toThrow('it: "run" does not exist')
  expect(readdirSync(join(at.home, 'plugins')).toSorted()).toEqual(['approved.json', 'echo'])
})

test('a new version in its place has to be approved again, and is compared with the approved one', async () => {
  using at = stage()
  const from = at.put(join(at.root, 'from'), 'echo')
  await at.plugins.install(from, from)
  await at.plugins.approve('echo', at.sound('echo').files.digest)
  at.put(from, 'echo', '0.2.0')
  await at.plugins.install(from, from, 'echo')
  expect(at.states()).toEqual([['echo', 'changed']])
  const set = differenceOf(at.plugins, at.sound('echo'))
  const [manifest] = set?.changes ?? []
  expect(manifest?.path).toBe('manifest.toml')
  expect(Buffer.from((manifest && set?.content(manifest, 'before', 9_999)) ?? []).toString()).toContain('version = "0.1.0"')
  at.put(from, 'other')
  await expect(at.plugins.install(from, from, 'echo')).rejects.toThrow('is now called "other", not "echo"')
  expect(at.states()).toEqual([['echo', 'changed']])
})

test('what is not a plugin is listed as broken with why', () => {
  using at = stage()
  mkdirSync(join(at.home, 'plugins/empty'), { recursive: true })
  at.put(join(at.home, 'plugins/wrong'), 'right')
  at.put(join(at.home, 'plugins/still'), 'still')
  chmodSync(join(at.home, 'plugins/still/run'), 0o644)
  const why = (name: string) => {
    const plugin = at.plugins.find(name)
    return plugin.state === 'broken' ? plugin.problems.join() : plugin.state
  }
  expect(why('empty')).toBe('it has no manifest.toml')
  expect(why('wrong')).toContain('its manifest says name = "right", and its folder is called "wrong"')
  expect(why('still')).toContain('"run" is not executable')
})

test('a damaged list of approvals approves nothing, and is not overwritten', async () => {
  using at = stage()
  at.put(join(at.home, 'plugins/echo'), 'echo')
  const { digest } = at.sound('echo').files
  for (const text of ['{', '{"echo":{}}', '{"echo":{"enabled":true,"approved":{"digest":"x","files":{}}}}', '[]']) {
    writeFileSync(join(at.home, 'plugins/approved.json'), text)
    expect(() => at.plugins.list('enabled')).toThrow('is damaged, so no plugin runs')
    await expect(at.plugins.approve('echo', digest)).rejects.toThrow('is damaged')
  }
})
