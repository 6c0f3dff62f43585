/** The test runner itself: what it counts, what it hides from the tests, and that nothing that goes wrong counts as passed. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { entriesOf, recordDurations } from '../../scripts/test/entries.ts'

const root = join(import.meta.dir, '../..')
const clone = mkdtempSync(join(tmpdir(), 'braidclaw-runner-'))

const suites: { readonly [name: string]: string } = {
  good: `test('one', () => {}); test('two', () => {})`,
  bad: `test('good', () => {}); test('bad', () => { throw new Error('told') }); test.skip('skipped', () => {})`,
  crash: `test('crash', () => process.kill(process.pid, 'SIGSEGV'))`,
  leave: `test('leave', () => process.exit(0))`,
  load: `import './nowhere.ts'; test('never', () => {})`,
  late: `test('good', () => { setTimeout(() => { throw new Error('late') }, 1) }); test('waits', () => Bun.sleep(50))`,
  empty: '',
  missing: `import { needs } from './support/needs.ts'
    test('always', () => {})
    test.if(needs('no-such-program', 'sh'))('with it', () => { throw new Error('tried') })`,
  environment: `test('scrubbed', () => {
    expect(Object.keys(process.env).filter((name) => /KEY|BRAIDCLAW|BUN_OPTIONS/.test(name))).toEqual([])
    expect(process.env.HOME).not.toBe(${JSON.stringify(process.env.HOME)})
  })`,
  size: `import { isDeep, repetitions } from '../test/support/tier.ts'
    if (isDeep) test('only there', () => {})
    test('so often', () => expect(repetitions({ fast: 1, deep: 2 })).toBe(isDeep ? 2 : 1))`,
  'long.deep': `test('long', () => {})`,
  child: `test('leaves a child behind', async () => {
    const child = Bun.spawn(['sleep', '60'], { stdio: ['ignore', 'inherit', 'inherit'] })
    child.unref()
    await Bun.write(${JSON.stringify(join(clone, 'child.pid'))}, String(child.pid))
  })`,
}

beforeAll(() => {
  cpSync(join(root, 'scripts'), join(clone, 'scripts'), { recursive: true })
  for (const path of ['support/needs.ts', 'support/tier.ts', 'control/support/postgres.ts', 'control/support/free-port.ts'])
    cpSync(join(root, 'test', path), join(clone, 'test', path))
  for (const [name, text] of Object.entries(suites))
    writeFileSync(join(clone, 'test', `${name}.test.ts`), `import { expect, test } from 'bun:test'\n${text}\n`)
})

afterAll(() => rmSync(clone, { recursive: true, force: true }))

async function runSuites(...names: string[]) {
  return runIn({}, ...names)
}

async function runIn(more: { readonly [name: string]: string }, ...names: string[]) {
  const env = { ...more, PATH: '/usr/bin:/bin', HOME: join(clone, 'home'), OPENAI_API_KEY: 'secret', BRAIDCLAW_HOME: join(clone, 'home') }
  const child = Bun.spawn([process.execPath, '--config=/dev/null', join(clone, 'scripts', 'test.ts'), ...names], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, code] = await Promise.all([child.stdout.text(), child.exited])
  return { stdout, code, last: stdout.trimEnd().split('\n').at(-1) }
}

test('all that fails is counted and told, and the last line is the sum', async () => {
  const { stdout, code, last } = await runSuites('good', 'bad')
  expect({ code, last }).toEqual({ code: 1, last: '3 passed, 1 failed, 1 skipped' })
  expect(stdout).toContain('error: told')
  expect(stdout).toContain('failed:\n  test/bad.test.ts\n')
})

test('a file that fails runs once: nothing hides that it fails now and then', async () => {
  const { stdout } = await runSuites('good', 'bad')
  expect(stdout.match(/test\/bad\.test\.ts {2}/g)).toHaveLength(1)
})

test('the deep tier runs the files with that name and those that choose their size, at full size', async () => {
  const files = (stdout: string) =>
    [...stdout.matchAll(/^ok {3}(\S+) {2}(\d+) passed/gm)].map(([, file, passed]) => `${file} ${passed}`).sort()
  const [fast, deep] = [await runSuites('size', 'long', 'good'), await runSuites('--deep', 'size', 'long', 'good')]
  expect(files(fast.stdout)).toEqual(['test/good.test.ts 2', 'test/size.test.ts 1'])
  expect(files(deep.stdout)).toEqual(['test/long.deep.test.ts 1', 'test/size.test.ts 2'])
  expect(fast.stdout).toContain('1 more with "npm run test:deep"')
})

test('a file for both engines belongs to both tiers, and uses the PostgreSQL of the run in the deep one alone', () => {
  const file = 'test/control/engines-of-runner.test.ts'
  writeFileSync(join(clone, file), `import { forEachEngine } from './support/engines.ts'\n`)
  const usesPostgres = (tier: 'fast' | 'deep') => entriesOf({ root: clone, tier, patterns: [file] }).map((entry) => entry.usesPostgres)
  expect([usesPostgres('fast'), usesPostgres('deep')]).toEqual([[false], [true]])
  rmSync(join(clone, file))
})

test('what took longest in the recorded run starts first, and the record keeps nothing about files that were removed', () => {
  const done = (name: string, ms: number) =>
    ({ file: `test/${name}.test.ts`, form: 'usual', startsProgram: true, usesPostgres: false, ms }) as const
  recordDurations(clone, [done('good', 600), done('bad', 4_321), done('crash', 20), done('removed', 9_000)])
  expect(JSON.parse(readFileSync(join(clone, 'scripts/test/durations.json'), 'utf8'))).toEqual({
    'test/bad.test.ts': 4_300,
    'test/good.test.ts': 600,
  })
  const order = entriesOf({ root: clone, tier: 'fast', patterns: ['good', 'bad', 'crash'] }).map(({ file }) => file)
  expect(order).toEqual(['test/bad.test.ts', 'test/good.test.ts', 'test/crash.test.ts'])
})

test.each([
  ['crash', '0 passed, 1 failed', 'died of SIGSEGV'],
  ['leave', '0 passed, 1 failed', 'before it reported'],
  ['load', '0 passed, 1 failed', 'nowhere.ts'],
  ['late', '1 passed, 1 failed', 'late'],
  ['empty', '0 passed, 1 failed', 'before it reported'],
])('a file that does %s is a failure', async (name, sum, told) => {
  const { stdout, code, last } = await runSuites(name)
  expect({ code, last }).toEqual({ code: 1, last: sum })
  expect(stdout).toContain(told)
})

test('a test whose program is missing is left out, by name and with what it needs; in CI it is a failure', async () => {
  const { stdout, code, last } = await runSuites('missing')
  expect({ code, last }).toEqual({ code: 0, last: '1 passed, 0 failed, 1 skipped' })
  expect(stdout).toContain(
    'skipped, because here is no no-such-program; "sudo scripts/setup-debian --tests" installs the programs:\n  test/missing.test.ts: with it\n',
  )
  expect(await runIn({ CI: 'true' }, 'missing')).toMatchObject({ code: 1, last: '1 passed, 1 failed' })
})

test('no test at all is no success', async () => {
  expect(await runSuites('no such file')).toMatchObject({ code: 1, last: '0 passed, 0 failed' })
})

test('tests see no keys, no settings and no real home', async () => {
  expect(await runSuites('environment')).toMatchObject({ code: 0, last: '1 passed, 0 failed' })
})

test('a child that a test leaves behind neither hangs the run nor outlives it', async () => {
  expect(await runSuites('child')).toMatchObject({ code: 0, last: '1 passed, 0 failed' })
  const pid = Number(await Bun.file(join(clone, 'child.pid')).text())
  while (await isRunning(pid)) await Bun.sleep(5)
})

/** A zombie that nobody has reaped yet is no longer running. */
async function isRunning(pid: number): Promise<boolean> {
  const stat = await Bun.file(`/proc/${pid}/stat`)
    .text()
    .catch(() => ') Z')
  return !/\) [ZX]/.test(stat)
}
