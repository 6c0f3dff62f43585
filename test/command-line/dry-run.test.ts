/** `tool run --dry-run`: what a command would change is shown, and nothing of it happens. */

import { describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { alone, home } from '../support/turns.ts'

const real = test.if(needs('bwrap'))
const dry = (at: Nest, tool: string, input: object, ...more: readonly string[]) =>
  at.run(['tool', 'run', tool, '--dry-run', '--json', JSON.stringify(input), ...more], { through: alone, timeoutMs: 20_000 })

describe('nothing happens', () => {
  real.each([['supervised'], ['full']])('to the workspace, in %s', async (level) => {
    using at = home()
    at.file('a.txt', 'one\n')
    const { code, stdout, stderr } = await dry(at, 'shell', { command: 'echo two > a.txt; echo new > b.txt' }, '--autonomy', level)
    expect([code, readFileSync(join(at.workspace, 'a.txt'), 'utf8'), existsSync(join(at.workspace, 'b.txt'))]).toEqual([0, 'one\n', false])
    expect(stdout).toBe(
      'diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\ndiff --git a/b.txt b/b.txt\nnew file mode 100644\n--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+new\n',
    )
    expect(stderr).toContain('nothing was changed: this was a dry run')
    expect(JSON.parse((await at.run(['changes', 'list', '--json'])).stdout)).toEqual([])
    expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
  })

  test.each([
    ['file_write', { path: 'a.txt', content: 'x' }],
    ['shell', { command: 'echo x > a.txt', direct: true }],
  ])('when %s writes in its own way', async (tool, input) => {
    using at = home()
    await dry(at, tool, input, '--autonomy', 'full')
    expect(readdirSync(at.workspace)).toEqual([])
  })

  test('where commands have no private view', async () => {
    using at = home()
    const { code } = await dry(at, 'shell', { command: 'echo x > a.txt' }, '--autonomy', 'full', '--sandbox', 'none')
    expect([code === 0, readdirSync(at.workspace)]).toEqual([false, []])
  })
})

real('a command that changes nothing says so, and prints what it printed', async () => {
  using at = home()
  const { code, stdout, stderr } = await dry(at, 'shell', { command: 'echo hello' })
  expect([code, stdout, stderr]).toEqual([0, 'hello\n', 'nothing would change\n'])
})

real('an executable of a folder is tried the same way', async () => {
  using at = home()
  const tool = at.file(
    '../tools/maker',
    '#!/bin/sh\n[ "$1" = --describe ] && { echo \'{"name":"maker","description":"makes","parameters":{"type":"object","properties":{}}}\'; exit; }\necho made > made.txt\n',
  )
  chmodSync(tool, 0o755)
  const { code, stdout } = await dry(at, 'maker', {}, '--tools', join(at.workspace, '../tools'), '--autonomy', 'full')
  expect([code, existsSync(join(at.workspace, 'made.txt'))]).toEqual([0, false])
  expect(stdout).toContain('+made\n')
})
