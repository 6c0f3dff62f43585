/** `agent --attempts`: attempts run side by side in copies; only the kept one reaches the workspace, and never over somebody's work. */

import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Invocation, Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { alone, call, home, scripted } from '../support/turns.ts'

const real = test.if(needs('bwrap'))
const steps = [
  call('file_write', { path: 'a.txt', content: 'two\n' }),
  call('shell', { command: 'mkdir d; echo made > d/b.txt; mv gone.txt moved.txt; pwd' }),
  { text: 'It is done in {{last_tool_result}}' },
]
const attempt = (at: Nest, args: readonly string[] = [], invocation: Invocation = {}) =>
  at.run(['agent', '--attempts', '2', '-m', 'go', ...args], {
    timeoutMs: 60_000,
    through: alone,
    env: scripted(at, steps).env,
    ...invocation,
  })
const ground = () => {
  const at = home()
  at.file('a.txt', 'one\n')
  at.file('gone.txt', 'kept\n')
  return at
}
const read = (at: Nest, path: string) => (existsSync(join(at.workspace, path)) ? readFileSync(join(at.workspace, path), 'utf8') : undefined)
const untouched = (at: Nest) =>
  expect([read(at, 'a.txt'), read(at, 'gone.txt'), read(at, 'd/b.txt')]).toEqual(['one\n', 'kept\n', undefined])

describe('nothing reaches the workspace', () => {
  real('when nobody can be asked; both change sets wait', async () => {
    using at = ground()
    const { code, stdout, stderr } = await attempt(at)
    untouched(at)
    expect(code).toBe(0)
    expect(stdout).toContain('attempt 1: answered · 4 paths: 2 new, 1 changed, 1 renamed (+2 −1) · ')
    expect(stdout).toContain('attempt 2: answered')
    const [, name = ''] = /to keep 1: braidclaw changes apply (\S+)/.exec(stderr) ?? []
    expect(readdirSync(join(at.home, '.cache/braidclaw')).filter((each) => each.startsWith('attempts-'))).toEqual([])
    expect(await at.run(['changes', 'apply', name, '--yes'])).toMatchObject({ code: 0 })
    expect([read(at, 'a.txt'), read(at, 'gone.txt'), read(at, 'd/b.txt')]).toEqual(['two\n', undefined, 'made\n'])
  })

  real('of what somebody changed while the attempts ran', async () => {
    using at = ground()
    const { stderr } = await attempt(at)
    writeFileSync(join(at.workspace, 'a.txt'), 'mine\n')
    const [, name = ''] = /to keep 2: braidclaw changes apply (\S+)/.exec(stderr) ?? []
    expect((await at.run(['changes', 'apply', name, '--yes'])).code).toBe(1)
    expect([read(at, 'a.txt'), read(at, 'gone.txt')]).toEqual(['mine\n', 'kept\n'])
  })

  test('without a message, with a conversation to go on with, or with a number that does not exist', async () => {
    using at = ground()
    for (const [args, why] of [
      [['agent', '--attempts', '2'], 'nothing to answer'],
      [['agent', '--attempts', '2', '-c', '-m', 'x'], 'begins new conversations'],
      [['agent', '--attempts', '2', '--keep', '3', '-m', 'x'], 'there are 2 attempts'],
      [['agent', '--keep', '1', '-m', 'x'], '--keep belongs to --attempts'],
    ] as const)
      expect(await at.run(args, { through: alone })).toMatchObject({ code: 2, stderr: expect.stringContaining(why) })
    untouched(at)
  })
})

real('the kept attempt is applied as one change set, which undo takes back, and the other is dropped', async () => {
  using at = ground()
  const { code, stderr } = await attempt(at, ['--keep', '2'])
  expect([code, stderr]).toEqual([0, expect.stringContaining('kept: attempt 2; braidclaw undo takes it back')])
  expect([read(at, 'a.txt'), read(at, 'gone.txt'), read(at, 'd/b.txt')]).toEqual(['two\n', undefined, 'made\n'])
  const sets = JSON.parse((await at.run(['changes', 'list', '--json'])).stdout)
  expect(sets.map(({ state }: { state: string }) => state)).toEqual(['applied'])
  expect((await at.run(['undo'])).code).toBe(0)
  untouched(at)
  expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
})

real('a person compares and chooses', async () => {
  using at = ground()
  const { stdout } = await at.terminal(
    ['agent', '--attempts', '2', '-m', 'go'],
    [
      ['Keep which?', 'd1\r'],
      ['+made', ''],
      ['Keep which?', '1\r'],
    ],
    { env: { ...scripted(at, steps).env, NO_COLOR: '1' }, timeoutMs: 60_000 },
  )
  expect(stdout).toContain('kept: attempt 1')
  expect(read(at, 'd/b.txt')).toBe('made\n')
})
