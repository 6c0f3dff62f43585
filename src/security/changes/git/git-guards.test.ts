/** One test for each guard of the judgement of git that no other test would miss. */

import { expect, test } from 'bun:test'
import { plainGit } from '../../command/plain-git.ts'
import { type FixtureEntry, review, type Tree } from '../review.fixture.ts'

const base = '[core]\n\trepositoryformatversion = 0\n\tbare = false\n'
const repository = (git: string, config = base): Tree => ({
  [`${git}/HEAD`]: 'ref: refs/heads/main\n',
  [`${git}/config`]: config,
  [`${git}/objects/k`]: 'x',
  [`${git}/refs/heads/main`]: 'x',
})

type ChangedFile = { readonly [path: string]: FixtureEntry | undefined }
const argv = (...words: readonly string[]) => ({ kind: 'argv', argv: ['git', ...words], executable: '/usr/bin/git' }) as const

/** In `full` after a yes, so nothing but a refusal counts. */
function isDenied(before: Tree, changed: ChangedFile, command?: ReturnType<typeof argv>): void {
  const found = review(before, changed, { level: 'full', approved: true, ...(command ? { command } : {}) })
  expect([changed, found]).toEqual([changed, expect.objectContaining({ verdict: 'deny', rule: 'changes.git' })])
}

test('settings that are too long to be read whole are refused: what runs a program may stand at their end', () => {
  const long = `${base}${'# a comment\n'.repeat(30_000)}`
  isDenied(repository('.git'), { '.git/config': `${long}[core]\n\tfsmonitor = touch x\n` })
})

test('settings that run programs may not change their order: the last one counts', () => {
  const hooks = (one: string, two: string) => `${base}[core]\n\thooksPath = ${one}\n\thooksPath = ${two}\n`
  isDenied(repository('.git', hooks('safe', 'tools')), { '.git/config': hooks('tools', 'safe') })
})

test('a folder on the way to hooks may not become a link or a file', () => {
  const there = {
    ...repository('.git', `${base}\thooksPath = tools/hooks\n`),
    'tools/hooks/pre-commit': 'run',
    'mine/hooks/pre-commit': 'evil',
  }
  for (const tools of [{ link: 'mine' }, 'a file']) isDenied(there, { 'tools/hooks/pre-commit': undefined, tools })
  const empty = { ...repository('.git', `${base}\thooksPath = tools/hooks\n`), 'tools/x': 'x', 'mine/hooks/pre-commit': 'evil' }
  isDenied(empty, { 'tools/x': undefined, tools: { link: 'mine' } })
})

test('a submodule may lead its own work tree, and nothing else, to a place in the workspace', () => {
  const [there, command] = [repository('.git/modules/m'), argv('submodule', 'update')]
  const set = (line: string) => ({ '.git/modules/m/config': `${base}${line}` })
  expect(review(there, set('\tworktree = ../../../m\n'), { level: 'full', approved: true, command })).toMatchObject({ verdict: 'apply' })
  isDenied(there, set('\thooksPath = ../../../tools\n'), command)
  isDenied(there, set('\tworktree = ../../../../out\n'), command)
})

test('a hook in a .git folder that is no repository yet is refused: the next command may complete it', () => {
  isDenied({}, { '.git/hooks/post-commit': 'run' })
})

test('what a repository beside the changed path names outside of itself is refused, whatever the folder is called', () => {
  const config = `${base}\thooksPath = ../tools\n`
  isDenied(repository('sub/.git', config), { 'tools/pre-commit': 'run' })
  isDenied({ ...repository('lib', `${base}[include]\n\tpath = ../more\n`), more: base }, { more: `${base}[alias]\n\tx = "!touch x"\n` })
  isDenied({ ...repository('a/sub/.git', config), 'a/b/c': 'x' }, { 'a/tools/x': 'run' })
  const free = review(repository('sub/.git', config), { 'tool/pre-commit.md': 'x', 'toolsx.md': 'x' })
  expect(free).toMatchObject({ verdict: 'apply' })
})

test('options before the sub-command are known, or the command is no plain one', () => {
  expect(plainGit(argv('--no-pager', '-C', 'sub', 'remote', 'add'))).toBe('remote')
  expect(['-c', '--git-dir=x', '', 'Config'].map((word) => plainGit(argv(word, 'config')))).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ])
  expect(plainGit(argv())).toBeUndefined()
})
