import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { installationOf } from './uninstall.ts'

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
  const { update, remove } = installationOf(join(at, place, below))
  return { update: update.replaceAll(at, ''), remove: remove.replaceAll(at, '') }
}

test.each([
  ['usr/lib', 'npm install -g --prefix /usr braidclaw@latest', 'npm uninstall -g --prefix /usr braidclaw'],
  ["it's/lib", `npm install -g --prefix '/it'\\''s' braidclaw@latest`, `npm uninstall -g --prefix '/it'\\''s' braidclaw`],
  ['home/.npm/_npx/1f2e', 'npx braidclaw@latest', 'rm -r /home/.npm/_npx/1f2e'],
  ['home/.bun/install/global', 'bun add -g braidclaw@latest', 'bun remove -g braidclaw'],
  ['home/.config/yarn/global', 'yarn global add braidclaw@latest', 'yarn global remove braidclaw'],
  ['home/.local/share/pnpm/global/5/.pnpm/braidclaw@1', 'pnpm add -g braidclaw@latest', 'pnpm remove -g braidclaw'],
] as const)('in %s: %s', (place, update, remove) => {
  // Only the paths below the temporary folder differ from a real machine.
  const found = installed(place)
  expect({ ...found, update: unquoted(found.update), remove: unquoted(found.remove) }).toEqual({
    update: unquoted(update),
    remove: unquoted(remove),
  })
})

const unquoted = (text: string) => text.replaceAll(/'(\/[\w/]+)'/g, '$1')

test.each([
  ['npm', 'package-lock.json', 'npm install braidclaw@latest', 'npm uninstall braidclaw'],
  ['no lock file', 'package.json', 'npm install braidclaw@latest', 'npm uninstall braidclaw'],
  ['pnpm', 'pnpm-lock.yaml', 'pnpm update --latest braidclaw', 'pnpm remove braidclaw'],
  ['yarn', 'yarn.lock', 'yarn upgrade --latest braidclaw', 'yarn remove braidclaw'],
  ['bun', 'bun.lock', 'bun update --latest braidclaw', 'bun remove braidclaw'],
] as const)('in a project of %s', (name, lock, update, remove) => {
  const place = `project-${name.replaceAll(' ', '-')}`
  const cd = `cd /${place} &&`
  expect(installed(place, { [lock]: '' })).toEqual({ update: `${cd} ${update}`, remove: `${cd} ${remove}` })
})

test('a project in a folder named lib is not the global prefix', () => {
  expect(installed('work/lib', { 'package.json': '{}' }).update).toBe('cd /work/lib && npm install braidclaw@latest')
})

test('a clone, the executable that it built, and an executable alone', () => {
  const sources = { 'src/main.ts': '' }
  expect(installed('clone', sources, 'bin/braidclaw')).toEqual({ update: 'cd /clone && git pull && npm ci', remove: 'rm -r /clone' })
  expect(installed('clone', sources, 'dist/braidclaw').update).toBe('cd /clone && git pull && npm ci && npm run build')
  expect(installed('opt', {}, 'bin/braidclaw')).toEqual({
    update: 'npm install -g braidclaw@latest && rm /opt/bin/braidclaw',
    remove: 'rm /opt/bin/braidclaw',
  })
})
