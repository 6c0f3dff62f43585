import { afterAll, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { place } from '../../../test/support/host.ts'
import { needs } from '../../../test/support/needs.ts'
import { runCheck } from './check.ts'
import type { CheckContext, CheckSpec } from './contract.ts'

const here = place()
const host = await here.host()
afterAll(async () => {
  await host.close()
  here[Symbol.dispose]()
})

const run = (command: string, more: Partial<CheckSpec> = {}, on: Partial<CheckContext> = {}) =>
  runCheck({ name: 'it', tier: 0, command, ...more }, { host, setup: host.setup, ...on })
const confined = test.if(needs('bwrap'))

confined('the text of success decides nothing, the exit code does', async () => {
  const [bad, good] = [await run('echo "42 tests passed"; exit 1'), await run('echo failed; exit 0')]
  expect(bad).toMatchObject({ name: 'it', tier: 0, pass: false, exit: 1, evidence: '42 tests passed\nexit code 1' })
  expect(good).toMatchObject({ pass: true, exit: 0, evidence: 'failed' })
  expect(bad.notRun).toBeUndefined()
})

confined('it changes nothing in the workspace, at any level, and writes nothing outside', async () => {
  const before = readFileSync(join(here.cwd, 'notes.md'), 'utf8')
  expect(await run('echo changed > notes.md && cat notes.md && echo new > new.md')).toMatchObject({ pass: true, evidence: 'changed' })
  expect(await run(`sh -c 'echo x > ${here.home}/escaped'`)).toMatchObject({ pass: false })
  const setup = here.setup({ autonomy: 'full' })
  expect(await run('echo changed > notes.md && cat notes.md && echo new > new.md', {}, { setup })).toMatchObject({ pass: true })
  expect(readFileSync(join(here.cwd, 'notes.md'), 'utf8')).toBe(before)
  expect([existsSync(join(here.cwd, 'new.md')), existsSync(join(here.home, 'escaped'))]).toEqual([false, false])
})

confined('each run has a receipt, and the question about its changes is answered with no', async () => {
  const count = () => host.receipts()?.count ?? 0
  const before = count()
  await run('echo x > receipt.md')
  expect(count()).toBeGreaterThan(before)
  expect(host.questions()).toEqual([])
})

confined('one that hangs is ended with everything that it started, and says so', async () => {
  const mark = `sleep 98765.${process.pid}`
  const hung = await run(`(trap '' TERM; setsid ${mark} & ${mark} & wait)`, { timeoutMs: 1_000 })
  expect(hung).toMatchObject({ pass: false })
  expect(hung.evidence).toContain('timed out after 1 s')
  expect(runningWith(mark)).toEqual([])
  // What it forked away ends with it, although it passes.
  expect(await run(`setsid ${mark} > /dev/null 2>&1 & exit 0`)).toMatchObject({ pass: true })
  expect(runningWith(mark)).toEqual([])
})

confined('a trap that exits with 0 does not make the stopped command pass', async () => {
  for (const trap of [
    'trap "exit 0" TERM EXIT; while :; do sleep 0.05; done',
    'bash -c \'trap "exit 0" TERM; while :; do sleep 0.05; done\'',
  ])
    expect(await run(trap, { timeoutMs: 1_000 })).toMatchObject({ pass: false })
})

confined('the evidence is the end of what it printed: escaped, of a limited size, and equal for equal output', async () => {
  const command = "head -c 3000000 /dev/zero | tr '\\0' x; printf '\\033[31mlast\\033[0m line\\n' >&2; exit 3"
  const [one, two] = [await run(command), await run(command)]
  expect(Buffer.byteLength(one.evidence)).toBeLessThanOrEqual(8_192)
  expect(one.evidence).toEndWith('\\u{1b}[31mlast\\u{1b}[0m line\nexit code 3')
  expect(one.evidence).toContain('are left out')
  expect(two.evidence).toBe(one.evidence)
  const both = await run('for n in 1 2 3 4 5 6 7 8 9; do echo "out $n"; echo "err $n" >&2; done')
  expect(both.evidence).toBe([1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => `out ${n}\nerr ${n}`).join('\n'))
})

confined('a flaky one passes when enough of its runs do, and the result says that', async () => {
  // The view is dropped, so only something outside of it can differ between the runs.
  const outcomes = ['1', '0', '0']
  const toss = () => writeFileSync(join(here.cwd, 'toss'), outcomes.shift() ?? '')
  const flaky = await run('exit $(cat toss)', { runs: 3, pass: 2 }, { opened: toss })
  expect(flaky).toMatchObject({ pass: true, flaky: true })
  expect(flaky.evidence).toStartWith('2 of 3 runs passed, 2 of at most 3 must pass')
  rmSync(join(here.cwd, 'toss'))
  const never = await run('exit 1', { runs: 3, pass: 2 })
  expect(never).toMatchObject({ pass: false, exit: 1 })
  expect(never.evidence).toStartWith('0 of 2 runs passed')
  expect(never.flaky).toBeUndefined()
})

confined('one that may not run at all says why, and was not run', async () => {
  expect(await run('cat ~/.ssh/id_ed25519')).toMatchObject({ pass: false, notRun: true })
  expect(await run('true', {}, { signal: AbortSignal.abort() })).toMatchObject({ pass: false, notRun: true })
  const { evidence, notRun } = await run('touch x', {}, { sandbox: 'none' })
  expect({ evidence, notRun }).toMatchObject({ evidence: expect.stringContaining('a check asks nobody'), notRun: true })
  expect(await runCheck({ name: 'empty', tier: 0 }, { host, setup: host.setup })).toMatchObject({ pass: false, notRun: true })
})

test('it never rejects, whatever keeps a conversation from opening', async () => {
  const broken = { host: { ...host, conversation: () => Promise.reject(new Error('the disk is full')) }, setup: host.setup }
  expect(await runCheck({ name: 'it', tier: 0, command: 'true' }, broken)).toMatchObject({ notRun: true, evidence: 'the disk is full' })
})

function runningWith(words: string): readonly string[] {
  const commands = readdirSync('/proc').map((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
    } catch {
      return ''
    }
  })
  return commands.filter((line) => line === words || line === `/usr/bin/${words}`)
}
