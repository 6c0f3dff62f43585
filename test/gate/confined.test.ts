/** What confined the commands of a call stands in its receipt. */

import { expect, test } from 'bun:test'
import { hasBubblewrap } from '../../src/sandbox/fixture.ts'
import type { Nest } from '../support/cli.ts'
import { given, needs } from '../support/needs.ts'
import { call, home, turn } from '../support/turns.ts'

const calls = [
  call('shell', { command: 'pwd' }),
  call('file_list', { path: '.' }),
  call('shell', { command: 'rm -rf /' }),
  { text: 'done' },
]

async function receipts(at: Nest): Promise<(readonly [tool: string, status: string, sandbox: string | undefined])[]> {
  const told = JSON.parse((await at.run(['receipt', 'list', '--json'])).stdout)
  return told.map(({ tool, status, sandbox }: { [name: string]: string }) => [tool, status, sandbox])
}

test('--sandbox none is written into every receipt, also of calls that were refused or start no process', async () => {
  using at = home()
  expect((await turn(at, calls, ['--sandbox', 'none', '--approve-all-medium'])).code).toBe(3)
  expect(await receipts(at)).toEqual([
    ['shell', 'allowed', 'none'],
    ['file_list', 'allowed', 'none'],
    ['shell', 'denied', 'none'],
  ])
  expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
})

test.if(hasBubblewrap())('otherwise the receipt names what really confined the children of the call, if it started any', async () => {
  using at = home()
  at.file('a.txt', 'here\n')
  expect((await turn(at, [call('search', { pattern: 'here' }), ...calls], ['--approve-all-medium'])).code).toBe(3)
  const [[, , search] = [], ...others] = await receipts(at)
  expect(search).toBe(Bun.which('rg') === null ? undefined : 'bubblewrap')
  expect(others).toEqual([
    ['shell', 'allowed', 'bubblewrap'],
    ['file_list', 'allowed', undefined],
    ['shell', 'denied', undefined],
  ])
  expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
})

const mayMount = given(process.getuid?.() === 0 && Bun.spawnSync(['unshare', '-m', 'true']).success, 'root')
const hideable = mayMount && needs('bwrap')
const without = ['unshare', '-m', 'sh', '-c', 'mount --bind /dev/null "$(command -v bwrap)"; exec "$@"', 'sh']

test.if(hideable)('where there is no bubblewrap no command runs, and both the operator and the model hear what to install', async () => {
  using at = home()
  at.file('left.txt', 'here')
  const script = [call('shell', { command: 'touch made.txt' }), { text: 'So: {{last_tool_result}}' }]
  const { stdout, stderr } = await turn(at, script, ['--approve-all-medium'], { through: without })
  expect(stderr).toContain('shell tool off')
  expect(stderr).toContain('apt install bubblewrap')
  expect(stdout).toContain('no sandbox, so no command runs')
  expect(stdout).toContain('--sandbox landlock, which protects less')
  expect((await at.run(['tool', 'run', 'file_list', '{"path":"."}'])).stdout).not.toContain('made.txt')
  expect((await receipts(at))[0]).toEqual(['shell', 'failed', undefined])
})

test.if(hideable)('the fall-back that protects less is taken only by name', async () => {
  using at = home()
  const { stderr } = await turn(
    at,
    [call('shell', { command: 'pwd' }), { text: 'done' }],
    ['--approve-all-medium', '--sandbox', 'landlock'],
    { through: without },
  )
  expect(stderr).not.toContain('shell tool off')
  const [[, status, sandbox] = []] = await receipts(at)
  expect([
    ['allowed', 'landlock'],
    ['failed', undefined],
  ]).toContainEqual([status, sandbox])
})
