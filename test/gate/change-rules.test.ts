/** The operator's rules about changes: what a command changed is dropped or asked about by what it touches, at every level. */

import { test as always, describe, expect } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { isDeep } from '../support/tier.ts'
import { alone, call, home, turn } from '../support/turns.ts'

const test = always.if(needs('bwrap'))

const page = readFileSync(join(import.meta.dir, '../../docs/rules.md'), 'utf8')
const [example = ''] = /(?<=```json\n)\{\n {2}"name": "migrations-stay"[^`]*/.exec(page) ?? []

function ruled(rule: string): Nest {
  const at = home()
  mkdirSync(join(at.home, '.braidclaw/rules'), { recursive: true })
  writeFileSync(join(at.home, '.braidclaw/rules/changes.json'), rule)
  at.file('migrations/1.sql', 'old\n')
  return at
}

const shell = (command: string) => [call('shell', { command }), { text: 'over' }]
const read = (at: Nest, path: string) => (existsSync(join(at.workspace, path)) ? readFileSync(join(at.workspace, path), 'utf8') : undefined)

describe('a rule that blocks', () => {
  test.each(['--auto', '--autonomy=full'])('drops the whole change set with %s, and the receipt names the rule', async (level) => {
    using at = ruled(example)
    const { code, stderr } = await turn(at, shell('echo x > a.txt; for f in migrations/*; do echo new > $f; done'), [level], {
      through: alone,
    })
    expect([code, read(at, 'migrations/1.sql'), read(at, 'a.txt')]).toEqual([3, 'old\n', undefined])
    expect(stderr).toContain('rule.migrations-stay')
    expect((await at.run(['receipt', 'list', '--json'])).stdout).toContain('rule.migrations-stay')
    expect((await turn(at, shell('echo x > a.txt'), [level], { through: alone })).code).toBe(0)
    expect(read(at, 'a.txt')).toBe('x\n')
  })

  test('denies the file tools too, and policy explain tells both', async () => {
    using at = ruled(example)
    const { code, stderr } = await turn(at, [call('file_delete', { path: 'migrations/1.sql' }), { text: 'over' }], ['--auto'], {
      through: alone,
    })
    expect([code, read(at, 'migrations/1.sql')]).toEqual([3, 'old\n'])
    expect(stderr).toContain('rule.migrations-stay')
    const deleting = ['policy', 'explain', '--tool', 'file_delete', '--args', '{"path":"migrations/1.sql"}']
    expect((await at.run(deleting)).stdout).toContain('rule:       rule.migrations-stay')
    expect((await at.run(['policy', 'explain', '--', 'make'])).stdout).toContain(
      'your rule:  rule.migrations-stay drops what it changes, if that touches {"path":{"path":"migrations/**"}',
    )
  })

  // It explores the whole program once more; `verify` with a rule of the home is tried in src/cli/commands/proof in both tiers.
  const inDepth = isDeep ? test : () => {}
  inDepth(
    'is part of what verify explores',
    async () => {
      using at = ruled(example)
      const { code, stdout } = await at.run(['verify'], { timeoutMs: 50_000 })
      expect([code, stdout]).toEqual([0, expect.stringContaining('rule.migrations-stay')])
    },
    120_000,
  )
})

test('a rule that asks: nobody to ask keeps the changes, in full too, and a yes applies them', async () => {
  using at = ruled('{"name":"look","on":{"type":"propose"},"changes":{"path":{"path":"migrations/**"}},"ask":true,"reason":"look at it"}')
  const ran = await turn(at, shell('echo new > migrations/1.sql'), ['--autonomy', 'full'], { through: alone })
  expect([ran.code, read(at, 'migrations/1.sql')]).toEqual([4, 'old\n'])
  const [{ id }] = JSON.parse((await at.run(['approvals', 'list', '--json'])).stdout)
  expect((await at.run(['approvals', 'list'])).stdout).toContain('migrations/1.sql')
  expect((await at.run(['approvals', 'allow', id])).code).toBe(0)
  expect(read(at, 'migrations/1.sql')).toBe('new\n')
})
