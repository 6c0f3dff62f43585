/** Runs of `agent --wiggum` at the entrance: how they end, what reaches the folder, and what a person reads. */

import { test as always, describe, expect } from 'bun:test'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readWiggumLine } from '../../src/channels/terminal/slash/wiggum-turn.ts'
import { commandCheck } from '../../src/host/checks/find-checks.ts'
import { beginWiggum, type WiggumChoices } from '../../src/host/run/wiggum/begin-wiggum.ts'
import type { Nest } from '../support/cli.ts'
import { hostOf } from '../support/host.ts'
import { needs } from '../support/needs.ts'
import { call, check, lastRun, mend, mended, project, reportOf, said, shell, tree, wiggum } from './wiggum.fixture.ts'

const test = always.if(needs('bwrap'))
const lib = (made: Nest) => readFileSync(join(made.workspace, 'src/lib.sh'), 'utf8')
const copies = (made: Nest) => {
  const folder = join(made.home, '.local/state/braidclaw/wiggum')
  return existsSync(folder) ? readdirSync(folder).filter((id) => existsSync(join(folder, id, '1/workspace'))) : []
}

test('works until the check passes, and applies the result as one change set that can be undone', async () => {
  using made = project()
  const replies = [said(), { tool_calls: [mend, call('file_write', { path: 'docs/why.md', content: 'why\n' })] }, said('mended')]
  const { code, stdout, stderr } = await wiggum(made, replies)
  expect({ code, stderr }).toMatchObject({ code: 0 })
  expect(stdout).toEndWith('mended\n')
  expect(stderr).toContain(`iteration 1 of 3: check failed: ${check} (exit 1)`)
  expect(stderr).toContain(`iteration 2 of 3: check passed: ${check}`)
  expect([lib(made), existsSync(join(made.workspace, 'docs/why.md')), copies(made)]).toEqual([mended, true, []])
  const report = await reportOf(made)
  expect(report).toMatchObject({ ending: { code: 'answered' }, testsChanged: [], result: { state: 'applied' } })
  expect(report.iterations.map(({ count, checks }) => [count, checks[0]?.pass])).toEqual([
    [1, false],
    [2, true],
  ])
  expect(report.iterations[0]?.checks[0]?.evidence).toContain('add 1 2 is -1')
  expect(report.receipts.length).toBeGreaterThan(1)
  expect((await made.run(['undo'])).code).toBe(0)
  expect(lib(made)).not.toBe(mended)
  const html = (await made.run(['run', 'report', 'last', '--html'])).stdout
  expect(html).toMatch(/^<!doctype html>.*<h2>Iteration 2<\/h2>/s)
})

test('says before any model is asked that the checks pass already', async () => {
  using made = project()
  writeFileSync(join(made.workspace, 'src/lib.sh'), mended)
  const first = await wiggum(made, [said()])
  expect([first.code, first.stdout, first.stderr]).toEqual([0, '', expect.stringContaining('the checks pass already')])
  expect(copies(made)).toEqual([])
})

test('changes that a person made meanwhile are named, nothing is overwritten, and the set waits', async () => {
  using made = project()
  const own = 'add() { echo mine; }\n'
  const replies = [{ tool_calls: [mend, call('file_write', { path: 'src/new.sh', content: 'x\n' })] }, { ...said(), delay_ms: 300 }]
  const running = made.start(['agent', '--wiggum', '--check', check, 'mend it'], { env: { BRAIDCLAW_MOCK_FIXTURE: made.fixture(replies) } })
  await running.says('iteration 1 of 20')
  writeFileSync(join(made.workspace, 'src/lib.sh'), own)
  const { code, stderr } = await running.result
  expect([code, lib(made), existsSync(join(made.workspace, 'src/new.sh'))]).toEqual([1, own, false])
  expect(stderr).toContain('you changed 1 path meanwhile, so nothing was applied')
  expect(stderr).toContain('"src/lib.sh" was changed meanwhile')
  const run = lastRun(made)
  const again = await made.run(['changes', 'apply', run, '--yes'])
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('src/lib.sh')])
  expect(lib(made)).toBe(own)
})

test('a result that needs a yes waits for it, and "changes apply RUN" applies it', async () => {
  using made = project()
  const { code, stderr } = await wiggum(made, [{ tool_calls: [mend, call('file_write', { path: 'Makefile', content: 'all:\n' })] }, said()])
  expect([code, existsSync(join(made.workspace, 'Makefile'))]).toEqual([4, false])
  expect(stderr).toContain('the checks pass, and the result needs a yes: "Makefile"')
  expect((await made.run(['changes', 'apply', lastRun(made), '--yes'])).code).toBe(0)
  expect([lib(made), existsSync(join(made.workspace, 'Makefile'))]).toEqual([mended, true])
})

test('--branch makes a commit, and leaves the folder and the checkout as they are', async () => {
  using made = project()
  const git = (...words: string[]) => {
    const identity = ['-c', 'user.name=me', '-c', 'user.email=me@example.org', '-c', 'init.defaultBranch=main']
    return Bun.spawnSync(['git', ...identity, ...words], { cwd: made.workspace, env: made.env })
      .stdout.toString()
      .trim()
  }
  git('init')
  writeFileSync(join(made.workspace, '.gitignore'), 'out/\n')
  git('add', '-A')
  git('commit', '-m', 'first')
  // A hook that would tell on a commit that is not plumbing.
  writeFileSync(join(made.workspace, '.git/hooks/reference-transaction'), `#!/bin/sh\ntouch ${made.dir}/hooked\n`, { mode: 0o755 })
  const before = tree(made.workspace)
  const changes = [mend, shell('mkdir out; echo x > out/y; ln -s lib.sh src/link; chmod +x src/lib.sh; rm README.md')]
  const { code, stderr } = await wiggum(made, [{ tool_calls: changes }, said()], { args: ['--branch', 'night/one'] })
  // The commit is judged like any other: an executable and a link need a yes.
  expect({ code, stderr }).toMatchObject({ code: 4, stderr: expect.stringContaining('"src/link"') })
  expect((await made.run(['changes', 'apply', lastRun(made), '--yes'])).code).toBe(0)
  const after = Object.entries(tree(made.workspace)).filter(([path]) => !path.startsWith('.git/'))
  expect(Object.fromEntries(after)).toEqual(Object.fromEntries(Object.entries(before).filter(([path]) => !path.startsWith('.git/'))))
  expect([git('status', '--short'), git('branch', '--show-current'), git('log', '--format=%s', 'night/one')]).toEqual([
    '',
    'main',
    'make the tests pass\nfirst',
  ])
  expect(git('diff', '--summary', 'main', 'night/one').split('\n')).toEqual([
    'delete mode 100644 README.md',
    ' mode change 100644 => 100755 src/lib.sh',
    ' create mode 120000 src/link',
  ])
  expect([git('show', 'night/one:src/lib.sh'), git('fsck', '--strict'), existsSync(join(made.dir, 'hooked'))]).toEqual([
    mended.trim(),
    '',
    false,
  ])
  const taken = await wiggum(made, [said()], { args: ['--branch', 'night/one'] })
  expect([taken.code, taken.stderr]).toEqual([2, expect.stringContaining('the branch night/one exists')])
})

describe('refuses', () => {
  const refusals: readonly (readonly [words: readonly string[], code: number, says: string])[] = [
    [['--wiggum', '--check', 'true', '--sandbox', 'none', 'do it'], 2, 'needs a sandbox'],
    [['--wiggum', '-c'], 1, 'no wiggum run waits in'],
    [['--wiggum', '-m', 'a', 'do it'], 2, '"a" and "do it" are two messages; pass one'],
  ]
  test('what makes no sense, before anything is done', async () => {
    using made = project()
    for (const [words, code, says] of refusals) {
      const done = await made.run(['agent', ...words])
      expect([words, done.code, done.stderr]).toEqual([words, code, expect.stringContaining(says)])
    }
    expect(copies(made)).toEqual([])
  })

  const choices: readonly (readonly [choices: WiggumChoices, code: string, says: string])[] = [
    [{ checks: [] }, 'usage', 'at least one --check'],
    [{ checks: [commandCheck('true'), commandCheck('true')] }, 'usage', 'two checks are called "true"'],
    [{ checks: [commandCheck('true')], maxIterations: 0 }, 'usage', '0 iterations'],
    [{ checks: [commandCheck('true')], until: 1 }, 'usage', 'is over already'],
    [{ checks: [commandCheck('true')], branch: '../x' }, 'usage', 'not the name of a branch'],
    [{ checks: [commandCheck('true')], branch: 'x' }, 'usage', 'not the root of a git repository'],
    [{ checks: [commandCheck('cat ~/.ssh/id_rsa')] }, 'error', 'cannot be run'],
  ]
  test('choices that cannot work, and leaves no copy', async () => {
    using made = project()
    const host = await hostOf(join(made.home, '.braidclaw'), made.workspace, made.home)
    const { signal } = new AbortController()
    for (const [each, code, says] of choices) {
      const begun = beginWiggum({ host, setup: host.setup, prompt: 'do it', choices: each, channel: 'test', say: () => {}, signal })
      expect(await begun.catch((error: unknown) => error)).toMatchObject({ code, message: expect.stringContaining(says) })
    }
    const readonly = {
      ...host.setup,
      config: { ...host.setup.config, security: { ...host.setup.config.security, autonomy: 'readonly' as const } },
    }
    const begun = beginWiggum({
      host,
      setup: readonly,
      prompt: 'x',
      choices: { checks: [commandCheck('true')] },
      channel: 'test',
      say: () => {},
      signal,
    })
    expect(await begun.catch((error: unknown) => String(error))).toContain('autonomy is readonly')
    await host.close()
    expect(copies(made)).toEqual([])
  })
})

test('/wiggum in a conversation reads checks, limits and the task', () => {
  expect(readWiggumLine("--check 'npm test' --check true --max-iterations 5 --no-protect-tests Make the tests pass")).toEqual({
    prompt: 'Make the tests pass',
    choices: { checks: [commandCheck('npm test'), commandCheck('true')], maxIterations: 5, protectTests: false },
  })
  for (const wrong of ['', 'Make it', "--check 'npm test'", '--chek x do', '--check x --max-iterations many do'])
    expect(readWiggumLine(wrong)).toStartWith('usage: /wiggum')
})
