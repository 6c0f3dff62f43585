/** `policy explain` applies the operator's own rules: those of the home, of a trusted workspace, and of a file that is not used yet. */

import { describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { call, home, refused, turn } from '../support/turns.ts'

const page = readFileSync(join(import.meta.dir, '../../docs/rules.md'), 'utf8')
const [example = ''] = /(?<=```json\n)\{\n {2}"name": "no-force-push"[^`]*/.exec(page) ?? []

function put(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

async function explained(at: Nest, ...args: readonly string[]) {
  const { code, stdout, stderr } = await at.run(['policy', 'explain', '--json', ...args])
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

const rule = (name: string, more: object = {}) =>
  JSON.stringify({ name, on: { type: 'propose', tool: 'file_read' }, reason: `because ${name}`, ...more })
const reading = ['--tool', 'file_read', '--args', '{"path":"a.txt"}']

test('a folder of rules without a rule changes nothing', async () => {
  using at = home()
  mkdirSync(join(at.home, '.braidclaw/rules'), { recursive: true })
  expect(await turn(at, [{ text: 'over' }])).toMatchObject({ code: 0, stderr: '' })
})

describe('a rule of the home', () => {
  test('denies at every level what the gate lets through, by its name and with its reason', async () => {
    using at = home()
    put(join(at.home, '.braidclaw/rules/a.json'), rule('no-reading'))
    const denied = { verdict: 'deny', rule: 'rule.no-reading', reason: 'because no-reading' }
    expect(await explained(at, ...reading)).toMatchObject({
      ...denied,
      meaning: `A rule of the operator, in ${at.home}/.braidclaw/rules/a.json.`,
      levels: { readonly: denied, supervised: denied, full: denied },
      rules: [{ rule: 'rule.no-reading', denies: true }],
    })
  })

  test('says the same as a real run', async () => {
    using at = home()
    put(join(at.home, '.braidclaw/rules/a.json'), rule('no-reading'))
    at.file('a.txt', 'text')
    const { code, stderr } = await turn(at, [call('file_read', { path: 'a.txt' }), { text: 'over' }])
    expect(code).toBe(3)
    expect(stderr).toContain('rule.no-reading')
  })

  test('leaves a denial of the gate to the gate, and other calls alone', async () => {
    using at = home()
    put(join(at.home, '.braidclaw/rules/a.json'), rule('no-reading'))
    expect(await explained(at, '--tool', 'file_read', '--args', '{"path":"/etc/passwd"}')).toMatchObject({ rule: 'path.outside_workspace' })
    expect(await explained(at, '--tool', 'file_list', '--args', '{"path":"."}')).toMatchObject({ verdict: 'allow', rules: [] })
  })

  test('that denies only later is named, with when', async () => {
    using at = home()
    put(join(at.home, '.braidclaw/rules/a.json'), `[${rule('later', { after: { tool: 'http' } })}, ${rule('twice', { atMost: 2 })}]`)
    const { stdout } = await at.run(['policy', 'explain', ...reading])
    expect(stdout).toStartWith('verdict:    allow\n')
    expect(stdout).toContain('your rule:  rule.later would deny it after {"tool":"http"} (')
    expect(stdout).toContain('your rule:  rule.twice would deny it from call 3 of a run on (')
  })

  test('that is not understood ends the command, as it ends a run', async () => {
    using at = home()
    put(join(at.home, '.braidclaw/rules/a.json'), '{"name": "x"}')
    refused(await at.run(['policy', 'explain', ...reading]), 2, '/rules/a.json')
  })
})

test('a rule of the workspace counts once the folder is trusted', async () => {
  using at = home()
  put(join(at.workspace, '.braidclaw/rules/a.json'), rule('project'))
  const before = await at.run(['policy', 'explain', ...reading])
  expect([before.code, before.stdout.split('\n')[0], before.stderr]).toEqual([
    0,
    'verdict:    allow',
    expect.stringContaining('is ignored'),
  ])
  expect((await at.run(['trust', at.workspace])).code).toBe(0)
  expect(await explained(at, ...reading)).toMatchObject({ verdict: 'deny', rule: 'rule.project' })
})

describe('--threads', () => {
  test('judges by the rules of one file instead', async () => {
    using at = home()
    put(join(at.home, '.braidclaw/rules/a.json'), rule('mine'))
    const file = at.file('try.json', rule('tried'))
    expect(await explained(at, '--threads', file, ...reading)).toMatchObject({ rule: 'rule.tried', rules: [{ rule: 'rule.tried' }] })
    expect(await explained(at, '--threads', 'try.json', ...reading)).toMatchObject({ rule: 'rule.tried' })
    refused(await at.run(['policy', 'explain', '--threads', 'none.json', ...reading]), 2, 'none.json does not exist')
  })

  test('does what the page about rules shows', async () => {
    using at = home()
    at.file('my.json', example)
    const [, command = '', output = ''] = /\n\$ braidclaw ([^\n]*--threads[^\n]*)\n([^`]*)```/.exec(page) ?? []
    const { code, stdout } = await at.run(command.split(' '))
    expect(code).toBe(0)
    expect(output).toContain('rule.no-force-push')
    expect(stdout.replaceAll(`${at.workspace}/`, '…/')).toStartWith(output)
  })

  test('shows for each way of forcing a push that the example of the page denies it', async () => {
    using at = home()
    at.file('my.json', example)
    const verdict = async (command: string) => (await explained(at, '--autonomy', 'full', '--threads', 'my.json', '--', command)).rule
    expect(
      await Promise.all(['git push --force', 'git push -f', 'git -C x push origin +main', 'git push -uf origin'].map(verdict)),
    ).toEqual(Array.from({ length: 4 }, () => 'rule.no-force-push'))
    expect(await verdict('git push')).toBe('autonomy.full')
  })
})
