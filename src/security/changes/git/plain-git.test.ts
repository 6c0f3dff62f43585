import { describe, expect, test } from 'bun:test'
import { review, type Tree } from '../review.fixture.ts'

const base = '[core]\n\trepositoryformatversion = 0\n\tbare = false\n'
const there: Tree = { '.git/HEAD': 'ref: refs/heads/main\n', '.git/config': base, '.git/objects/x': 'x', '.git/refs/heads/main': 'x' }

describe('a plain git command', () => {
  const git = (...words: readonly string[]) => ({ kind: 'argv', argv: ['git', ...words], executable: '/usr/bin/git' }) as const
  const after = (text: string, command: ReturnType<typeof git>) => review(there, { '.git/config': base + text }, { level: 'full', command })

  test('may set what it is for, but a person must see it, also in full', () => {
    const told = (text: string, ...words: readonly string[]) =>
      expect([words, after(text, git(...words))]).toEqual([words, expect.objectContaining({ verdict: 'ask', rule: 'changes.git_asks' })])
    told('[pull]\n\trebase = true\n', 'config', 'pull.rebase', 'true')
    told('[remote "o"]\n\tpushurl = git@example.org:x\n', '-C', 'sub', 'remote', 'set-url', '--push', 'o', 'git@example.org:x')
    told('[core]\n\tsparseCheckout = true\n', 'sparse-checkout', 'set', 'x')
    expect(review(there, { '.npmrc': 'x' }, { level: 'full', command: git('checkout', 'x') })).toMatchObject({
      verdict: 'ask',
      rule: 'changes.git_asks',
    })
  })

  test('may not set what runs programs, nor what another one is for, nor bring a protected name unless it brings history', () => {
    const refused = (text: string, ...words: readonly string[]) =>
      expect([words, after(text, git(...words))]).toEqual([words, expect.objectContaining({ verdict: 'deny', rule: 'changes.git' })])
    refused('[diff]\n\texternal = x\n', 'config', 'diff.external', 'x')
    refused('[gc]\n\trecentObjectsHook = x\n', 'config', 'gc.recentObjectsHook', 'x')
    refused('[diff "diff"]\n\ttextconv = x\n', 'config', 'x', 'x')
    refused('[remote]\n\tpushDefault = ext::x\n', 'config', 'x', 'x')
    refused('[pull]\n\trebase = true\n', 'remote', 'add')
    refused('[pull]\n\trebase = true\n', '-c', 'x=y', 'config', 'pull.rebase', 'true')
    expect(review(there, { '.npmrc': 'x' }, { level: 'full', command: git('apply', 'x') })).toMatchObject({
      verdict: 'deny',
      rule: 'changes.protected',
    })
    const script = { kind: 'script', script: 'git checkout x' } as const
    expect(review(there, { '.npmrc': 'x' }, { level: 'full', command: script })).toMatchObject({ verdict: 'deny' })
  })
})
