import { describe, expect, test } from 'bun:test'
import { review, type Tree } from '../review.fixture.ts'

const settings = '[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n'
const evil = `${settings}\tfsmonitor = "x"\n`
const repository = (git = '.git', config = settings): Tree => ({
  [`${git}/HEAD`]: 'ref: refs/heads/main\n',
  [`${git}/config`]: config,
  [`${git}/objects/info`]: { folder: true },
  [`${git}/refs/heads`]: { folder: true },
})

describe('a plain git init of a folder that was not there', () => {
  const argv = (words: string) => ({ kind: 'argv', executable: '/usr/bin/git', argv: words.split(' ') }) as const
  const init = (words: string, before: Tree, changed: Tree) => review(before, changed, { command: argv(words) })
  const fresh = repository('sub/.git')

  test('is harmless as long as git makes nothing but data and its first settings', () => {
    for (const words of ['git init sub', 'git init -q sub', 'git init -b main sub', 'git init --quiet --initial-branch=x sub'])
      expect([words, init(words, {}, fresh)]).toMatchObject([words, { verdict: 'apply', rule: 'changes.harmless' }])
  })

  test('asks where the folder was there, where it is the workspace, and for every other command', () => {
    expect(init('git init sub', { 'sub/notes': 'x' }, fresh)).toMatchObject({ verdict: 'ask', rule: 'changes.git_asks' })
    expect(init('git init', {}, repository())).toMatchObject({ verdict: 'ask', rule: 'changes.git_asks' })
    for (const words of [
      'git init --template=t sub',
      'git -C x init sub',
      'git -c a.b=c init sub',
      'git init',
      'git clone x sub',
      'make sub',
    ])
      expect([words, init(words, {}, fresh)]).toMatchObject([words, { verdict: 'ask', rule: 'changes.git_asks' }])
    expect(review({}, fresh)).toMatchObject({ verdict: 'ask', rule: 'changes.git_asks' })
    expect(review({}, fresh, { command: argv('git init sub'), level: 'supervised' })).toMatchObject({ rule: 'changes.git_asks' })
  })

  test('asks for examples of hooks that are executables, and is refused with hooks and settings that run programs', () => {
    const sample = { 'sub/.git/hooks/x.sample': { file: 'x', mode: 0o755 } } as const
    expect(init('git init sub', {}, { ...fresh, ...sample })).toMatchObject({ verdict: 'ask', rule: 'changes.not_harmless' })
    expect(init('git init sub', {}, { ...fresh, 'sub/.git/hooks/post-commit': 'x' })).toMatchObject({ verdict: 'deny' })
    expect(init('git init sub', {}, repository('sub/.git', evil))).toMatchObject({ verdict: 'deny' })
  })
})
