/** `changes` and `undo`: what was changed is shown exactly, taken back exactly, and never over somebody else's work. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { about, createFixture, type Fixture } from '../../src/workspace/changes/fixture.ts'
import { type Nest, nest } from '../support/cli.ts'

let at: Nest
let kept: Fixture
beforeEach(async () => {
  at = nest()
  kept = await createFixture()
})
afterEach(async () => {
  at[Symbol.dispose]()
  await kept[Symbol.asyncDispose]()
})

const env = () => ({ BRAIDCLAW_HOME: kept.base, BRAIDCLAW_WORKSPACE_DIR: kept.root })
const run = (...args: readonly string[]) => at.run(args, { env: env(), cwd: kept.root })
const read = (path: string) => readFileSync(kept.at(path), 'utf8')
/** Writes files of the workspace before any command. */
const given = (files: { readonly [path: string]: string }) => {
  for (const [path, text] of Object.entries(files)) writeFileSync(kept.at(path), text)
}
/** A command that writes these files; `null` removes one. */
async function made(call: string, files: { readonly [path: string]: string | null }, apply = true): Promise<void> {
  const set = await kept.command((path) => {
    for (const [name, text] of Object.entries(files)) text === null ? rmSync(path(name)) : writeFileSync(path(name), text)
  }, call)
  const whose = { ...about, call, at: Date.now(), command: `make ${call}` }
  const review = { digest: 'd'.repeat(64), verdict: 'ask', rule: 'r', reason: 'it asks', summary: 's', count: 1 } as const
  if (!apply) return await kept.store.hold(set.id, { ...set, about: whose, review })
  const applied = await kept.store.apply({ ...set, about: whose })
  if (!applied.ok) throw new Error(applied.message)
}

describe('undo changes nothing', () => {
  test('when there is nothing to undo, here or at all', async () => {
    expect(await run('undo')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining(`there is nothing to undo in ${kept.root}`),
    })
    expect(await run('undo', 'run_1/call_1')).toMatchObject({ code: 1, stderr: expect.stringContaining('no change sets are kept yet') })
    await made('call_1', { 'a.txt': 'one\n' })
    const elsewhere = await at.run(['undo'], { env: { BRAIDCLAW_HOME: kept.base } })
    expect(elsewhere).toMatchObject({ code: 1, stderr: expect.stringContaining(`the latest elsewhere is run_1/call_1 in ${kept.root}`) })
    expect(read('a.txt')).toBe('one\n')
  })

  test('of a file that somebody changed since, unless it is told to', async () => {
    given({ 'a.txt': 'old\n' })
    await made('call_1', { 'a.txt': 'new\n', 'b.txt': 'b\n' })
    given({ 'a.txt': 'mine\n' })
    const { code, stdout, stderr } = await run('undo')
    expect([code, stdout, read('a.txt'), read('b.txt')]).toEqual([1, '', 'mine\n', 'b\n'])
    expect(stderr).toContain('1 path of run_1/call_1 changed since:\n  a.txt ')
    expect(stderr).toContain('--force overwrites what was changed since')
    expect(JSON.parse((await run('undo', '--json')).stdout)).toMatchObject({
      name: 'run_1/call_1',
      ok: false,
      conflicts: [{ path: 'a.txt' }],
    })
    expect(await run('undo', '--force')).toMatchObject({ code: 0 })
    expect([read('a.txt'), existsSync(kept.at('b.txt'))]).toEqual(['old\n', false])
  })

  test('with --dry-run, which shows the way back', async () => {
    given({ 'a.txt': 'old\n' })
    await made('call_1', { 'a.txt': 'new\n', 'b.txt': 'b\n' })
    const { code, stdout } = await run('undo', '--dry-run')
    expect([code, stdout, read('a.txt')]).toEqual([
      0,
      'changed a.txt (+1 −1)\n@@ -1 +1 @@\n-new\n+old\ndeleted b.txt (+0 −1)\n@@ -1 +0,0 @@\n-b\n2 paths: 1 changed, 1 deleted (+1 −2)\n',
      'new\n',
    ])
  })

  test('of a set that waits for a decision, or that does not exist', async () => {
    await made('call_7', { 'a.txt': 'x' }, false)
    expect(await run('undo', 'call_7')).toMatchObject({ code: 1, stderr: expect.stringContaining('pending') })
    const { code, stderr } = await run('undo', 'run_1/cal_7')
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('the change set "run_1/cal_7" does not exist; did you mean "run_1/call_7"?; see: braidclaw changes list'),
    ])
  })
})

describe('undo', () => {
  test('takes the latest back exactly, then the one before, and redo brings them again', async () => {
    given({ 'a.txt': 'one\n', 'gone.txt': 'kept\n' })
    await made('call_1', { 'a.txt': 'two\n', 'gone.txt': null })
    await made('call_2', { 'a.txt': 'three\n' })
    expect(await run('undo')).toMatchObject({ code: 0, stdout: 'undone: 1 path of run_1/call_2 (shell: make call_2)\n' })
    expect(read('a.txt')).toBe('two\n')
    expect((await run('undo')).stdout).toBe('undone: 2 paths of run_1/call_1 (shell: make call_1)\n')
    expect([read('a.txt'), read('gone.txt')]).toEqual(['one\n', 'kept\n'])
    expect((await run('changes', 'redo', 'run_1/call_1')).stdout).toBe('done again: 2 paths of run_1/call_1 (shell: make call_1)\n')
    expect([read('a.txt'), existsSync(kept.at('gone.txt'))]).toEqual(['two\n', false])
  })

  test('asks at a terminal before it overwrites somebody else’s work', async () => {
    given({ 'a.txt': 'old\n' })
    await made('call_1', { 'a.txt': 'new\n' })
    given({ 'a.txt': 'mine\n' })
    const ask = (answer: string) => at.terminal(['undo'], [['[y/N]', answer]], { env: env(), cwd: kept.root })
    const no = await ask('\r')
    expect([no.code, read('a.txt')]).toEqual([1, 'mine\n'])
    expect(no.stdout).toContain('1 path of run_1/call_1 changed since:\n  a.txt ')
    expect([(await ask('y\r')).code, read('a.txt')]).toEqual([0, 'old\n'])
  })
})

describe('changes', () => {
  test('list names each set, with its state and its number', async () => {
    await made('call_1', { 'a.txt': 'one\n' })
    await made('call_2', { 'b.txt': 'two\n', 'c.txt': '' }, false)
    const { code, stdout } = await run('changes', 'list')
    expect(code).toBe(0)
    expect(stdout.replace(/\d{4}-\d\d-\d\d \d\d:\d\d/g, 'WHEN')).toBe(
      '   1  run_1/call_2  pending        2 changes     WHEN  shell: make call_2\n   2  run_1/call_1  applied        1 change      WHEN  shell: make call_1\n',
    )
    expect(JSON.parse((await run('changes', 'list', '--json', '--limit', '1')).stdout)).toMatchObject([{ state: 'pending', count: 2 }])
  })

  test('show tells of pending, applied and undone sets alike; into a pipe it is a patch that git takes back', async () => {
    given({ 'a.txt': 'one\n' })
    await made('call_1', { 'a.txt': 'two\n' })
    const patch = await run('changes', 'show', '2')
    expect(patch).toMatchObject({ code: 1, stderr: expect.stringContaining('the change set "2" does not exist') })
    const { stdout } = await run('changes', 'show')
    expect(stdout).toBe('diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n')
    const back = Bun.spawnSync(['git', 'apply', '-R', '--check', '-'], { cwd: kept.root, stdin: Buffer.from(stdout) })
    expect(back.exitCode).toBe(0)
    const seen = await at.terminal(['changes', 'show', 'last'], [], { env: env(), cwd: kept.root })
    expect(seen.stdout).toContain('run_1/call_1 · applied · ')
    expect(seen.stdout).toContain('\u001b[31m-one\u001b[39m\n\u001b[32m+two\u001b[39m\n')
    const plain = await at.terminal(['changes', 'show', 'last'], [], { env: { ...env(), NO_COLOR: '1' }, cwd: kept.root })
    expect(plain.stdout).not.toContain('\u001b[')
    await run('undo')
    const json = JSON.parse((await run('changes', 'show', 'call_1', '--json')).stdout)
    expect(json).toMatchObject({ name: 'run_1/call_1', state: 'undone', changes: [{ path: 'a.txt' }], undone: ['a.txt'] })
    await made('call_2', { 'p.txt': 'waits\n' }, false)
    expect((await run('changes', 'show', 'run_1/call_2')).stdout).toContain('+waits\n')
  })

  test('restore takes back only the named paths, and a folder with everything in it', async () => {
    mkdirSync(kept.at('d'))
    given({ 'd/a.txt': 'a\n', 'd/b.txt': 'b\n', 'c.txt': 'c\n' })
    await made('call_1', { 'd/a.txt': 'A\n', 'd/b.txt': 'B\n', 'c.txt': 'C\n' })
    expect(await run('changes', 'restore', 'last', './d/')).toMatchObject({
      code: 0,
      stdout: 'restored: 2 paths of run_1/call_1 (shell: make call_1)\n',
    })
    expect([read('d/a.txt'), read('d/b.txt'), read('c.txt')]).toEqual(['a\n', 'b\n', 'C\n'])
    expect((await run('undo')).code).toBe(0)
    expect(read('c.txt')).toBe('c\n')
    expect(await run('changes', 'restore', 'last', 'elsewhere')).toMatchObject({ code: 1 })
  })

  test('what a set holds cannot control the terminal', async () => {
    await made('call_1', { 'x\u001b[2Jy': 'a\u001b[31mb\n' })
    const { stdout } = await at.terminal(['changes', 'show'], [], { env: { ...env(), NO_COLOR: '1' }, cwd: kept.root })
    expect(stdout).not.toContain('\u001b[')
    expect(stdout).toContain('new x\\u{1b}[2Jy (+1 −0)')
  })
})
