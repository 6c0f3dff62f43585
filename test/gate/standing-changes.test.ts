/** "Always" to the changes of a command: the next time it changes only the same paths, nothing asks; anything else still does. */

import { test as always, expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../support/needs.ts'
import { talk } from '../support/talk.ts'
import { alone, call, home, turn } from '../support/turns.ts'

const test = always.if(needs('bwrap'))

test('an answer to changes holds for this command and these paths, is listed, and is gone once revoked', async () => {
  using at = home()
  at.file('tool.sh', 'date +%s%N > out.txt; test -f more && date > other.txt; true\n')
  const script = [call('shell', { command: 'bash tool.sh' }), { text: 'done' }]
  await talk(at, script, [['[y/', 'a\r']], ['-m', 'go'])
  const first = readFileSync(join(at.workspace, 'out.txt'), 'utf8')
  expect((await at.run(['approvals', 'rules', 'list'])).stdout).toContain('bash tool.sh, while it changes only out.txt')
  expect((await turn(at, script, [], { through: alone })).code).toBe(0)
  expect(readFileSync(join(at.workspace, 'out.txt'), 'utf8')).not.toBe(first)
  at.file('more', '')
  expect((await turn(at, script, [], { through: alone })).code).toBe(4)
  const [{ id }] = JSON.parse((await at.run(['approvals', 'rules', 'list', '--json'])).stdout)
  expect((await at.run(['approvals', 'rules', 'revoke', String(id)])).code).toBe(0)
})
