/** A rule that can never apply: `verify` and every run say so before anything happens. */

import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { home, turn } from '../support/turns.ts'

function put(at: Nest, rule: object): string {
  const folder = join(at.home, '.braidclaw/rules')
  mkdirSync(folder, { recursive: true })
  const file = join(folder, 'a.json')
  writeFileSync(file, JSON.stringify({ name: 'mine', ...rule }))
  return file
}

const typo = { on: { type: 'propose', tool: 'shell' }, when: { 'input.comand': { glob: 'git push*' } } }
const unknown = { on: { type: 'propose', tool: 'shel' } }

test('an argument that no such tool has: neither verify nor a run goes on, and the rule, the word and the right word are named', async () => {
  using at = home()
  const file = put(at, typo)
  const said = `error: ${file}: rule "mine".when["input.comand"]: shell has no argument "comand", so the rule never applies; did you mean "command"?`
  const verified = await at.run(['verify', '--threads', file])
  expect([verified.code, verified.stdout, verified.stderr.trim()]).toEqual([2, '', said])
  const { code, stdout, stderr } = await turn(at, [{ text: 'not asked' }])
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toContain(said)
})

test('a name that could be an executable of the operator: it is said, and the run goes on', async () => {
  using at = home()
  put(at, unknown)
  const said = 'rule "mine".on.tool: no built-in tool is called "shel"'
  const verified = await at.run(['verify'])
  expect([verified.code, verified.stderr]).toEqual([0, expect.stringContaining(said)])
  const { code, stdout, stderr } = await turn(at, [{ text: 'an answer' }])
  expect([code, stdout.trim()]).toEqual([0, 'an answer'])
  expect(stderr).toContain(said)
})
