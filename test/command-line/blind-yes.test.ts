/** A person who says yes to a file tool sees what it would write, whichever way the question reaches them. */

import { describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { gateway } from '../support/gateway.ts'
import { alone, call, home, turn } from '../support/turns.ts'

async function asked(at: Nest, tool: string, input: object): Promise<string> {
  const { code, stderr } = await turn(at, [call(tool, input), { text: 'over' }], [], { through: alone })
  expect([tool, code]).toEqual([tool, 4])
  return /approvals allow (\S+),/.exec(stderr)?.[1] ?? ''
}

const shown = async (at: Nest, id: string, cwd = at.workspace) => ({
  text: (await at.run(['approvals', 'show', id], { cwd })).stdout,
  patch: JSON.parse((await at.run(['approvals', 'show', id, '--json'], { cwd })).stdout).patch as string | undefined,
})

describe('approvals show', () => {
  const patchOf = (old: string, now: string) => `@@ -1 +1 @@\n-${old}\n+${now}\n`
  test.each<[string, object, string]>([
    ['file_write', { path: 'a.txt', content: 'new\n' }, patchOf('old', 'new')],
    ['file_edit', { path: 'a.txt', old: 'ol', new: 'bol' }, patchOf('old', 'bold')],
    ['file_write', { path: 'deep/b.txt', content: 'first\n' }, '--- /dev/null\n+++ b/deep/b.txt\n@@ -0,0 +1 @@\n+first\n'],
    ['file_delete', { path: 'a.txt' }, '+++ /dev/null\n@@ -1 +0,0 @@\n-old\n'],
  ])('%s %j: the difference to the workspace as it is now, and the yes does just that', async (tool, input, expected) => {
    using at = home()
    at.file('a.txt', 'old\n')
    const id = await asked(at, tool, input)
    const { text, patch = '' } = await shown(at, id)
    expect(patch).toContain(expected)
    for (const line of expected.split('\n').filter((each) => /^[+-]\w/.test(each))) expect(text).toContain(line)
    const applied = Bun.spawnSync(['git', 'apply', '--check', '-'], { cwd: at.workspace, stdin: Buffer.from(patch) })
    expect(applied.stderr.toString()).toBe('')
    expect((await shown(at, id, at.home)).patch).toBe(patch)
    expect((await at.run(['approvals', 'allow', id])).code).toBe(0)
    expect((await turn(at, [call(tool, input), { text: 'over' }], ['-c'], { through: alone })).code).toBe(0)
    const after = Bun.spawnSync(['git', 'apply', '--check', '--reverse', '-'], { cwd: at.workspace, stdin: Buffer.from(patch) })
    expect(after.stderr.toString()).toBe('')
    expect((await shown(at, id)).patch).toBeUndefined()
  })

  test('follows a file that somebody changed meanwhile, and shows nothing for a call that would fail now', async () => {
    using at = home()
    at.file('a.txt', 'one\n')
    const id = await asked(at, 'file_edit', { path: 'a.txt', old: 'one', new: 'two' })
    at.file('a.txt', 'zero\none\n')
    expect((await shown(at, id)).patch).toContain(' zero\n-one\n+two\n')
    rmSync(join(at.workspace, 'a.txt'))
    expect((await shown(at, id)).patch).toBeUndefined()
  })
})

test('HTTP, which is what the dashboard shows, has the same patch', async () => {
  using at = home()
  at.file('a.txt', 'old\n')
  const id = await asked(at, 'file_write', { path: 'a.txt', content: 'new\n' })
  await using server = await gateway(at)
  const { body } = await server.ask(`/approvals/${id}`)
  expect(body).toMatchObject({ id, about: 'call', patch: (await shown(at, id)).patch })
  expect(body.patch).toContain('-old\n+new\n')
})
