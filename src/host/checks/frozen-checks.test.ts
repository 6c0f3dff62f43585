import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { commandCheck } from './find-checks.ts'
import { filesOf, freezeChecks, isTestFile, whyChanged } from './frozen-checks.ts'

let root = ''
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'braidclaw-frozen-'))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

function write(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}
const scripts = (all: object, more: object = {}) => write('package.json', JSON.stringify({ scripts: all, ...more }))
const named = (command: string) => filesOf(commandCheck(command), root).map(({ path, role }) => `${role} ${path}`)

test('the files that a command names are found, through the scripts of package.json', () => {
  scripts({ test: 'node scripts/run.js && npm run lint -- --quiet', lint: 'eslint .', pretest: 'sh setup.sh' })
  for (const path of ['scripts/run.js', 'setup.sh', 'node_modules/.bin/eslint', 'src/a.test.ts', 'tests/b.py', 'other.sh']) write(path, 'x')
  expect(named('npm test')).toEqual(
    expect.arrayContaining([
      'script package.json#scripts.test',
      'script package.json#scripts.pretest',
      'script package.json#scripts.lint',
      'script scripts/run.js',
      'script setup.sh',
      'program node_modules/.bin/eslint',
      'config eslint.config.js',
    ]),
  )
  expect(named('npm test')).not.toContain('script other.sh')
})

test.each([
  ['the script of package.json', () => scripts({ test: "sh run.sh && jest; trap 'exit 0' EXIT" }), 'package.json#scripts.test'],
  ['a script that comes before it', () => scripts({ test: 'sh run.sh && jest', pretest: 'exit 0' }), 'package.json#scripts.pretest'],
  ['a file that the command names', () => write('run.sh', 'exit 0'), 'run.sh'],
  ['the shell that npm gives to scripts', () => write('.npmrc', 'script-shell=/bin/true'), '.npmrc'],
  ['what the test runner leaves out', () => write('jest.config.cjs', 'module.exports = { testMatch: [] }'), 'jest.config.cjs'],
  ['a file that is deleted', () => rmSync(join(root, 'run.sh')), 'run.sh'],
])('%s cannot change unnoticed', (_, change, path) => {
  scripts({ test: 'sh run.sh && jest' })
  write('run.sh', 'exit 1')
  const spec = commandCheck('npm test')
  const [frozen] = freezeChecks([spec], root)
  change()
  const [now] = freezeChecks([spec], root)
  expect(frozen && now && whyChanged(frozen, now)).toBe(`the check "npm test" is not the one that was frozen: ${path} changed`)
  // A journal has the digest alone.
  const { files: _files, ...bare } = { ...frozen, name: 'npm test', tier: 0 as const, digest: frozen?.digest ?? '' }
  expect(now && whyChanged(bare, now)).toContain('its definition, or a file that it names, changed')
})

test('a configuration that appears counts as changed, and so does another definition', () => {
  const spec = commandCheck('eslint .')
  const [frozen] = freezeChecks([spec], root)
  const [other] = freezeChecks([{ ...spec, runs: 9, pass: 1 }], root)
  write('eslint.config.mjs', 'export default []')
  const [now] = freezeChecks([spec], root)
  expect(frozen && now && whyChanged(frozen, now)).toContain('eslint.config.mjs changed')
  expect(frozen && other && whyChanged(frozen, other)).toContain('its definition')
})

test('what the work may change is free: sources, dependencies, tests', () => {
  scripts({ test: 'node --test' })
  write('a.test.js', 'x')
  const [frozen] = freezeChecks([commandCheck('npm test')], root)
  scripts({ test: 'node --test', build: 'tsc' }, { dependencies: { zod: '4' } })
  write('a.test.js', 'y')
  write('src/a.js', 'z')
  const [now] = freezeChecks([commandCheck('npm test')], root)
  expect(frozen && now && whyChanged(frozen, now)).toBeUndefined()
})

test.each([
  ['src/a.test.ts', true],
  ['a_test.go', true],
  ['tests/x/fixture.json', true],
  ['pkg/test_a.py', true],
  ['conftest.py', true],
  ['src/__snapshots__/a.snap', true],
  ['Button.stories.tsx', true],
  ['src/contest.ts', false],
  ['src/latest/a.ts', false],
  ['src/attest.py', false],
])('%s is a test: %p', (path, is) => expect(isTestFile(path)).toBe(is))
