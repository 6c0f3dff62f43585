import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { installationOf } from './installation.ts'

let at: string
beforeAll(() => {
  at = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-installation-')))
})
afterAll(() => rmSync(at, { recursive: true, force: true }))

const program = 'node_modules/@braidclaw/linux-x64/bin/braidclaw'

function installed(place: string, files: { readonly [name: string]: string } = {}, below = program) {
  for (const [name, text] of Object.entries({ [below]: '', ...files })) {
    mkdirSync(dirname(join(at, place, name)), { recursive: true })
    writeFileSync(join(at, place, name), text)
  }
  const { kind, update, remove } = installationOf(join(at, place, below))
  return { kind, update: update.replaceAll(at, ''), remove: remove.replaceAll(at, '') }
}

test.each([
  ['usr/lib', 'npm, global', 'npm install -g --prefix /usr braidclaw@latest', 'npm uninstall -g --prefix /usr braidclaw'],
  ["it's/lib", 'npm, global', `npm install -g --prefix '/it'\\''s' braidclaw@latest`, `npm uninstall -g --prefix '/it'\\''s' braidclaw`],
  ['home/.npm/_npx/1f2e', 'npx', 'npx braidclaw@latest', 'rm -r /home/.npm/_npx/1f2e'],
  ['home/.bun/install/global', 'bun, global', 'bun add -g braidclaw@latest', 'bun remove -g braidclaw'],
  ['home/.config/yarn/global', 'yarn, global', 'yarn global add braidclaw@latest', 'yarn global remove braidclaw'],
  ['home/.local/share/pnpm/global/5/.pnpm/braidclaw@1', 'pnpm, global', 'pnpm add -g braidclaw@latest', 'pnpm remove -g braidclaw'],
] as const)('in %s: %s', (place, kind, update, remove) => {
  // Only the paths below the temporary folder differ from a real machine.
  const found = installed(place)
  expect({ ...found, update: unquoted(found.update), remove: unquoted(found.remove) }).toEqual({
    kind,
    update: unquoted(update),
    remove: unquoted(remove),
  })
})

const unquoted = (text: string) => text.replaceAll(/'(\/[\w/]+)'/g, '$1')

test.each([
  ['npm', { 'package-lock.json': '' }, 'npm install', 'npm uninstall'],
  ['no lock file', {}, 'npm install', 'npm uninstall'],
  ['pnpm', { 'pnpm-lock.yaml': '' }, 'pnpm add', 'pnpm remove'],
  ['yarn', { 'yarn.lock': '' }, 'yarn add', 'yarn remove'],
  ['bun', { 'bun.lock': '' }, 'bun add', 'bun remove'],
] as const)('in a project of %s that names it', (name, lock, add, remove) => {
  const place = `project-${name.replaceAll(' ', '-')}`
  const cd = `cd /${place} &&`
  const manifest = (key: string) => ({ 'package.json': JSON.stringify({ [key]: { braidclaw: '1' } }), ...lock })
  expect(installed(place, manifest('dependencies'))).toEqual({
    kind: 'dependency',
    update: `${cd} ${add} braidclaw@latest`,
    remove: `${cd} ${remove} braidclaw`,
  })
  expect(installed(place, manifest('devDependencies')).update).toMatch(/ -[Dd] braidclaw@latest$/)
})

test('a dependency of a dependency is updated, and not added to the project', () => {
  const found = installed('deep', { 'package.json': '{"dependencies":{"other":"1"}}', 'package-lock.json': '' })
  expect(found.update).toBe('cd /deep && npm update braidclaw')
})

test('a project in a folder named lib is no global prefix, and an unreadable manifest names nothing', () => {
  expect(installed('work/lib', { 'package.json': '{' })).toMatchObject({
    kind: 'dependency',
    update: 'cd /work/lib && npm update braidclaw',
  })
})

test('a clone, the executable that it built, and an executable alone', () => {
  const sources = { 'src/main.ts': '' }
  expect(installed('clone', sources, 'bin/braidclaw')).toEqual({
    kind: 'clone',
    update: 'cd /clone && git pull && npm ci',
    remove: 'rm -r /clone',
  })
  expect(installed('clone', sources, 'dist/braidclaw').update).toBe('cd /clone && git pull && npm ci && npm run build')
  expect(installed('opt', {}, 'bin/braidclaw')).toEqual({
    kind: 'executable',
    update: 'npm install -g braidclaw@latest && rm /opt/bin/braidclaw',
    remove: 'rm /opt/bin/braidclaw',
  })
})
