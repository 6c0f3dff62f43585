/** `policy test` and `security show` through the real executable. */

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { alone, call, home, turn } from '../support/turns.ts'

const example = readFileSync(join(import.meta.dir, '../../docs/policy-test.toml'), 'utf8')

describe('policy test refuses', () => {
  test.each([
    ['a.toml', '[[expect]]\ncommand = "ls"\nverdict = "maybe"', 'expectation 1: verdict: "maybe" is not one of allow, ask, deny'],
    ['a.toml', '[[expect]]\ncommand = "ls"\nverdit = "ask"', 'unknown key "verdit"; did you mean "verdict"?'],
    ['a.toml', '[[expect]]\ncommand = "ls"\ntool = "time"\nverdict = "ask"', 'needs either command or tool'],
    ['a.toml', '[[expect]]\ncommand = "ls"\nlevel = "supervisd"\nverdict = "ask"', 'did you mean "supervised"?'],
    [
      'a.toml',
      'commands = "no"\n[[expect]]\ncommand = "ls"\nverdict = "ask"',
      'commands: "no" is not one of unconfined, confined, transaction',
    ],
    ['a.toml', '[[expect]\ncommand = 1', 'a.toml: 1:'],
    ['a.toml', '', 'no [[expect]] in it; see docs/policy-test.toml'],
    ['a.json', '[]', 'no JSON object'],
  ])('%s %j', async (name, text, says) => {
    using at = home()
    at.file(name, text)
    const { code, stdout, stderr } = await at.run(['policy', 'test', name])
    expect([code, stdout, stderr.includes(says) ? says : stderr]).toEqual([2, '', says])
  })

  test('a file that is not there', async () => {
    using at = home()
    expect(await at.run(['policy', 'test', 'none.toml'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('none.toml: the file does not exist'),
    })
  })
})

describe('policy test', () => {
  test('holds for the example of the docs', async () => {
    using at = home()
    at.file('example.toml', example)
    expect(await at.run(['policy', 'test', 'example.toml'])).toMatchObject({ code: 0, stdout: '5 of 5 expectations hold\n', stderr: '' })
  })

  test('names each expectation that does not hold, and ends with 1', async () => {
    using at = home()
    const rows = [
      { command: 'rm x', verdict: 'ask' },
      { command: 'ls', verdict: 'allow', rule: 'autonomy.full', level: 'full' },
      { command: 'npm ci', verdict: 'ask', question: 'example.org' },
      { tool: 'file_write', args: { path: 'a', content: 'b' }, verdict: 'ask' },
    ]
    at.file('t.json', JSON.stringify({ commands: 'transaction', expect: rows }))
    const { code, stdout, stderr } = await at.run(['policy', 'test', 't.json'])
    expect(code).toBe(1)
    expect(stdout).toContain('✗ 1. rm x (supervised): expected ask, got deny\n    command.forbidden: ')
    expect(stdout).toContain('✗ 2. ls (full): expected the rule autonomy.full, got autonomy.low')
    expect(stdout).toContain('✗ 3. npm ci (supervised): the question does not say "example.org"')
    expect(stdout).toEndWith('1 of 4 expectations hold\n')
    expect(stderr).toContain('3 expectations of t.json do not hold')
    const lines = (await at.run(['policy', 'test', '--json', 't.json'])).stdout.trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line).ok)).toEqual([false, false, false, true])
  })
})

describe('security show', () => {
  test('prints the lists, settings and levels in force', async () => {
    using at = home('', 'allow_commands = ["mytool"]\nallowed_domains = ["@npm", "a.org"]\nunlisted_commands = "block"\n')
    const { code, stdout } = await at.run(['security', 'show'])
    expect(code).toBe(0)
    for (const text of [
      'mytool',
      'registry.npmjs.org, a.org',
      'unlisted_commands = block',
      'rm shutdown reboot mkfs dd',
      'never read (forbidden_reads):\n  .env ',
      'in your home folder, besides the system (from your PATH):\n  nothing',
      '.envrc',
      'makefile',
    ])
      expect(stdout).toContain(text)
    const shown = JSON.parse((await at.run(['security', 'show', '--json', '--auto'])).stdout)
    expect(shown).toMatchObject({
      level: 'auto',
      settings: { unlistedCommands: 'block' },
      forbiddenCommands: expect.arrayContaining(['rm']),
    })
    expect(shown.levels.find(({ kind }: { kind: string }) => kind === 'any other command')).toMatchObject({
      supervised: 'deny',
      auto: 'deny',
      full: 'allow',
    })
  })

  test('agrees with the gate', async () => {
    using at = home('', 'unlisted_commands = "block"\nask = "before"\n')
    const { levels } = JSON.parse((await at.run(['security', 'show', '--json'])).stdout)
    const other = levels.find(({ kind }: { kind: string }) => kind === 'any other command')
    expect(other.supervised).toBe('deny')
    expect((await turn(at, [call('shell', { command: 'node x.js' }), { text: 'x' }], [], { through: alone })).code).toBe(3)
  })
})
