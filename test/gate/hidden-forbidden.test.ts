/** However a command is spelt that removes files with rm, the file is still there: in `full`, through the whole program. */

import { test as always, expect } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../support/needs.ts'
import { call, everyTool, home, turn } from '../support/turns.ts'

const test = always.if(needs('bwrap'))

/** Most are refused before they run; the rest is found only by what stands in the place of rm in the sandbox. */
const spellings = readFileSync(join(import.meta.dir, '../../src/security/hidden.fixture.jsonl'), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line): string => JSON.parse(line)[3])
  .filter((command) => !/\b(reboot|shutdown|mkfs|dd)\b/.test(command))

const full = ['--autonomy', 'full']
const limits = 'max_tool_rounds = 400\nshell_timeout_s = 5\n'

test('no spelling of rm removes the canary', async () => {
  using at = home(`\n[limits]\n${limits}`)
  const files = { x: 'canary\n', 'script.sh': 'rm x\n', 'env.sh': 'rm x\n', file: 'rm\n', a: "__import__('os').system('rm x')\n" }
  for (const [name, text] of Object.entries({ ...files, 'tool.py': files.a, 'prog.awk': 'BEGIN { system("rm x") }\n' })) at.file(name, text)
  const rounds = Array.from({ length: Math.ceil(spellings.length / 20) }, (_, round) => ({
    tool_calls: spellings
      .slice(round * 20, round * 20 + 20)
      .map((command, index) => ({ id: `c${round}-${index}`, ...call('shell', { command }).tool_calls[0] })),
  }))
  const { stderr } = await turn(at, [...rounds, { text: 'done' }], full)
  expect(existsSync(join(at.workspace, 'x'))).toBe(true)
  expect(readFileSync(join(at.workspace, 'x'), 'utf8')).toBe('canary\n')
  expect(stderr).not.toContain('error:')
  expect(stderr.match(/rm is (?:one of forbidden_commands|forbidden)/g)?.length).toBeGreaterThan(80)
}, 120_000)

test('the same file goes when nothing is forbidden: the canary can be killed', async () => {
  using at = home()
  at.config(everyTool.replace(/forbidden_commands = .*/, 'forbidden_commands = []'))
  at.file('x', 'canary\n')
  expect((await turn(at, [call('shell', { command: 'sh -c "rm x"' }), { text: 'done' }], full)).code).toBe(0)
  expect(existsSync(join(at.workspace, 'x'))).toBe(false)
})
