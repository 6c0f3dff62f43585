import { describe, expect, test } from 'bun:test'
import { alwaysKey, alwaysRuleFor } from './always.ts'
import type { CommandVerdict } from './command/verdict.ts'

function verdict(argv: readonly string[], fields: Partial<CommandVerdict> = {}): CommandVerdict {
  const executable = `/usr/bin/${argv[0]}`
  return {
    verdict: 'run',
    risk: 'medium',
    rule: 'r',
    reason: '',
    plan: { kind: 'argv', argv: [...argv], executable },
    executables: [executable],
    writes: [],
    readOnly: false,
    runs: [],
    hosts: [],
    ...fields,
  }
}

describe('no lasting yes', () => {
  const never = [
    'sh -c ls',
    'bash x.sh',
    'env ls',
    'sudo ls',
    'xargs rm',
    'timeout 5 ls',
    'nice ls',
    'busybox ls',
    'python3 x.py',
    'python3.12 x.py',
    'node x.js',
    'perl -e 1',
    'awk 1',
    'sed p',
    'make all',
    'npx x',
    'ssh h',
    'docker ps',
    'find . -name x -exec ls',
  ]
  const open = [
    'git -C /x log',
    'git',
    'git config x y',
    'git rebase -x ls',
    'git bisect run',
    'npm run build',
    'npm exec x',
    'npm test',
    'cargo run',
    'go run .',
    'go generate',
    'git --exec-path=/x log',
    'git $X',
  ]
  test.each([...never.filter((line) => !line.startsWith('find')), ...open])('for %s', (line) =>
    expect(alwaysRuleFor(verdict(line.split(' ')))).toBeUndefined(),
  )

  test('for a script, for several programs, for high risk, for what is blocked, for an unresolved name', () => {
    const argv = ['ls']
    expect(alwaysRuleFor(verdict(argv, { plan: { kind: 'script', script: 'ls | wc' } }))).toBeUndefined()
    expect(alwaysRuleFor(verdict(argv, { executables: ['/usr/bin/find', '/usr/bin/ls'] }))).toBeUndefined()
    expect(alwaysRuleFor(verdict(argv, { risk: 'high' }))).toBeUndefined()
    expect(alwaysRuleFor(verdict(argv, { verdict: 'blocked' }))).toBeUndefined()
    expect(alwaysRuleFor(verdict(argv, { plan: undefined }))).toBeUndefined()
    expect(alwaysRuleFor(verdict(argv, { plan: { kind: 'argv', argv, executable: 'ls' } }))).toBeUndefined()
  })
})

test('a rule is the resolved executable and, where there are sub-commands, the sub-command', () => {
  expect(alwaysRuleFor(verdict(['ls', '-l']))).toEqual({ executable: '/usr/bin/ls', subcommand: '' })
  expect(alwaysRuleFor(verdict(['git', 'log', '-1']))).toEqual({ executable: '/usr/bin/git', subcommand: 'log' })
})

test('a rule covers neither another sub-command, nor another file of the same name, nor a riskier form', () => {
  const log = alwaysRuleFor(verdict(['git', 'log']))
  if (!log) throw new Error('no rule')
  expect(alwaysRuleFor(verdict(['git', 'log', '--oneline']))).toEqual(log)
  expect(alwaysRuleFor(verdict(['git', 'push']))).not.toEqual(log)
  expect(alwaysRuleFor(verdict(['git', 'log'], { risk: 'high' }))).toBeUndefined()
  expect(alwaysRuleFor(verdict(['git', 'log'], { plan: { kind: 'argv', argv: ['git', 'log'], executable: '/ws/git' } }))).not.toEqual(log)
  expect(alwaysKey(log)).toBe('["/usr/bin/git","log"]')
})

test('a sub-command that opens what it runs to the next word has none, nor has a program only named like one that is fine', () => {
  const open = 'run exec x dlx explore create init rebase bisect config filter-branch submodule foreach alias api generate tool start test'
  for (const word of open.split(' ')) expect(alwaysRuleFor(verdict(['npm', word]))).toBeUndefined()
  for (const word of ['Run', 'a b', 'st@tus', '-x', '2x', 'status/']) expect(alwaysRuleFor(verdict(['git', word]))).toBeUndefined()
  expect(alwaysRuleFor(verdict(['git']))).toBeUndefined()
  for (const name of ['git-x', 'cpython', 'pythonista', 'lux'])
    expect(alwaysRuleFor(verdict([name]))).toEqual({ executable: `/usr/bin/${name}`, subcommand: '' })
  expect(alwaysRuleFor(verdict(['git', 'cherry-pick2']))).toEqual({ executable: '/usr/bin/git', subcommand: 'cherry-pick2' })
  expect(alwaysKey({ executable: '/bin/ls', subcommand: '' })).toBe('["/bin/ls"]')
  expect(alwaysKey({ executable: '/bin/git', subcommand: 'log' })).toBe('["/bin/git","log"]')
})
