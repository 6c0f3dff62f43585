import { describe, expect, test } from 'bun:test'
import { changesBetween, type FixtureEntry, lookAt, policy, review, reviewOf, type Tree } from '../review.fixture.ts'
import { reviewChanges } from '../review-changes.ts'

const base = '[core]\n\trepositoryformatversion = 0\n\tbare = false\n'
const evil = `${base}\tfsmonitor = touch x\n`

/** A repository in this folder of the workspace, with one linked worktree. */
const repository = (git = '.git', config = base): Tree => ({
  [`${git}/HEAD`]: 'ref: refs/heads/main\n',
  [`${git}/config`]: config,
  [`${git}/objects/ab/cd`]: 'x',
  [`${git}/objects/ab/ef`]: 'x',
  [`${git}/refs/heads/kept`]: '0'.repeat(40),
  [`${git}/refs/heads/main`]: '0'.repeat(40),
  [`${git}/hooks/pre-commit`]: '#!/bin/sh\n',
  [`${git}/worktrees/wt/HEAD`]: 'ref: refs/heads/wt\n',
  [`${git}/worktrees/wt/commondir`]: '../..\n',
})

type ChangedFile = { readonly [path: string]: FixtureEntry | undefined }

/** Judges as `full` does after an approval, so that only a refusal counts. */
const verdict = (before: Tree, changed: ChangedFile) => review(before, changed, { level: 'full', approved: true })
const isDenied = (before: Tree, changed: ChangedFile) =>
  expect([changed, verdict(before, changed)]).toEqual([changed, expect.objectContaining({ verdict: 'deny', rule: 'changes.git' })])
const isFree = (before: Tree, changed: ChangedFile) =>
  expect([changed, review(before, changed)]).toEqual([changed, expect.objectContaining({ verdict: 'apply', rule: 'changes.harmless' })])
const asks = (before: Tree, changed: ChangedFile) => {
  expect([changed, review(before, changed)]).toEqual([changed, expect.objectContaining({ verdict: 'ask', rule: 'changes.git_asks' })])
  expect(verdict(before, changed)).toMatchObject({ verdict: 'apply' })
}

describe.each(['.git', 'sub/.git', 'a/b/c/d/e/.git', 'bare', 'vendor/x/m.git', '/home/u/.config/main/.git', '/srv/elsewhere'])(
  'in the repository %s',
  (git) => {
    const there = repository(git)
    const at = (changed: ChangedFile): ChangedFile =>
      Object.fromEntries(Object.entries(changed).map(([path, entry]) => [`${git}/${path}`, entry]))

    test('refused is what runs programs or sends git elsewhere', () => {
      const changes: readonly ChangedFile[] = [
        { 'hooks/post-commit': 'x' },
        { 'hooks/pre-commit': 'y' },
        { 'hooks/pre-commit': undefined },
        { 'hooks/pre-commit': { file: '#!/bin/sh\n', mode: 0o755 } },
        { 'hooks/sub/x.sample': 'x' },
        { hooks: { link: 'elsewhere' }, 'hooks/pre-commit': undefined },
        { config: evil },
        { config: `${base}[alias]\n\tst = "!touch x"\n` },
        { config: `${base}[include]\n\tpath = x\n` },
        { config: 'not settings' },
        { config: { link: 'x' } },
        { config: undefined },
        { 'config.worktree': evil },
        { commondir: '../..' },
        { commondir: 'elsewhere' },
        { 'worktrees/wt/commondir': '../../../x' },
        { 'worktrees/wt/config.worktree': evil },
        { 'worktrees/wt/gitdir': '/home/u/other/.git' },
        { gitdir: '/etc/x' },
        { 'objects/info/alternates': '/home/u/objects\n' },
        { 'objects/info/alternates': '../../../../../../../../../x' },
        { 'objects/info/alternates': '"\\057etc"' },
        { 'objects/info/http-alternates': 'http://x' },
        { 'branches/x': 'http://x' },
        { 'remotes/origin': 'URL: ext::sh' },
        { 'rebase-merge/git-rebase-todo': 'pick abc\nexec touch x\n' },
        { 'rebase-merge/git-rebase-todo': 'x touch x' },
        { 'worktrees/wt/rebase-merge/git-rebase-todo': 'exec touch x' },
        { 'sequencer/todo': 'exec x' },
        { 'rebase-merge/strategy': 'x/../evil' },
        { 'sequencer/opts': '[options]\n\tstrategy = evil\n' },
        { 'modules/m/HEAD': 'x', 'modules/m/objects/x': 'x', 'modules/m/refs/x': 'x', 'modules/m/config': evil },
        { 'refs/heads/main': { link: '../x' } },
        { 'hooks/HEAD': 'x', 'hooks/objects/x': 'x', 'hooks/refs/x': 'x', 'hooks/post-commit': 'x' },
      ]
      for (const changed of changes)
        isDenied(changed.config === undefined && 'config' in changed ? repository(git, evil) : there, at(changed))
    })

    test('free is plain data', () => {
      const data = [
        'HEAD',
        'ORIG_HEAD',
        'FETCH_HEAD',
        'index',
        'packed-refs',
        'COMMIT_EDITMSG',
        'MERGE_MSG',
        'MERGE_HEAD',
        'shallow',
        'description',
        'objects/ab/new',
        'objects/pack/pack-1.pack',
        'refs/heads/new/branch',
        'logs/HEAD',
        'logs/refs/heads/main',
        'info/attributes',
        'rr-cache/x/postimage',
        'rebase-merge/done',
        'rebase-apply/next',
        'worktrees/wt/HEAD',
        'worktrees/wt/index',
        'BISECT_LOG',
      ]
      for (const path of data) isFree(there, at({ [path]: 'x' }))
      isFree(there, at({ 'objects/ab/cd': undefined, 'refs/heads/main': undefined }))
      isFree(
        there,
        at({
          'rebase-merge/git-rebase-todo': '# x\npick abc one\nr abc\nlabel onto\nmerge -C abc x # y\nbreak\nupdate-ref refs/heads/x\n',
        }),
      )
      isFree(there, at({ 'rebase-merge/strategy': 'ort\n', 'sequencer/opts': '[options]\n\tstrategy = recursive\n\tmainline = 1\n' }))
      isFree(
        there,
        at({ 'hooks/x.sample': '#!/bin/sh', 'worktrees/wt/gitdir': '/home/u/ws/wt/.git\n', 'objects/info/alternates': '# none\n' }),
      )
      isFree(there, at({ config: `# comment\n${base}` }))
    })

    test('a harmless setting asks, one deleted too', () => {
      const origin =
        '[remote "origin"]\n\turl = https://example.org/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n'
      asks(there, at({ config: base + origin }))
      asks(repository(git, base + origin), at({ config: base }))
      expect(review(there, at({ config: base + origin })).reason).toContain('remote.origin.url, remote.origin.fetch, branch.main.remote')
    })

    test('a setting whose value is not harmless is refused', () => {
      const values = [
        ['remote "o"', 'url', 'ext::sh -c x'],
        ['remote "o"', 'url', '-oProxyCommand=x'],
        ['remote "o"', 'url', 'ssh://-oProxyCommand=x/y'],
        ['remote "o"', 'url', 'foo://x'],
        ['remote "o"', 'uploadpack', 'x'],
        ['remote "o"', 'vcs', 'x'],
        ['branch "b"', 'remote', 'ext::x'],
        ['branch "b"', 'mergeoptions', '-s x'],
        ['core', 'hooksPath', 'x'],
        ['core', 'worktree', '..'],
        ['core', 'sshCommand', 'x'],
        ['url "ext::sh"', 'insteadOf', 'https://'],
        ['credential', 'helper', '!x'],
        ['filter "f"', 'clean', 'x'],
        ['diff', 'external', 'x'],
        ['gpg', 'program', 'x'],
        ['submodule "s"', 'update', '!x'],
        ['core', 'pager', 'x'],
        ['extensions', 'worktreeConfig', 'true'],
        ['user', 'signingkey', 'x'],
      ]
      for (const [section, key, value] of values) isDenied(there, at({ config: `${base}[${section}]\n\t${key} = "${value}"\n` }))
    })

    test('deleting it whole asks, and its hooks do not stop that', () => {
      asks(there, Object.fromEntries([...Object.keys(there), git].map((path) => [path, undefined])))
    })
  },
)

test('what stands above a repository outside the workspace protects nothing in it; its own folder holds nothing but what is of git', () => {
  const [git, bare] = ['/home/u/.vscode/main/.git', '/srv/bare.git']
  isFree(repository(git), { [`${git}/refs/heads/new`]: '0'.repeat(40), [`${git}/worktrees/wt/index`]: 'x' })
  for (const path of ['wt2/a.txt', 'deploy.sh', 'wt2'])
    expect(verdict(repository(bare), { [`${bare}/${path}`]: 'x' })).toMatchObject({ verdict: 'deny', rule: 'changes.git' })
  for (const path of ['packed-refs', 'gc.log']) isFree(repository(bare), { [`${bare}/${path}`]: 'x' })
})

test('a question about a repository is one of its own in supervised too, so that an "always" for everyday changes does not answer it', () => {
  const changed = { '.git/config': `${base}[user]\n\tname = x\n` }
  expect(review(repository(), changed, { level: 'supervised' })).toMatchObject({ verdict: 'ask', rule: 'changes.git_asks' })
  expect(review(repository(), { '.git/index': 'x' }, { level: 'supervised' })).toMatchObject({ verdict: 'ask', rule: 'changes.supervised' })
})

test('what decides about what git ignores asks', () => {
  expect(review(repository(), { '.git/info/exclude': 'x' })).toMatchObject({ verdict: 'ask', rule: 'changes.not_harmless' })
})

test('settings that were not understood before are not changed', () => {
  isDenied(repository('.git', 'not settings'), { '.git/config': base })
})

test('a program or hook folder that the settings name does not change; what lies beside it does', () => {
  const config = `${base}\thooksPath = tools/hooks\n\tsshCommand = "./bin/ssh -v"\n\tattributesFile = attrs\n[alias]\n\tx = "!sh scripts/x.sh; ls"\n[include]\n\tpath = ../shared\n`
  const there = { ...repository('.git', config), shared: '', 'tools/hooks/x': '', attrs: '' }
  isDenied(there, { 'tools/hooks/pre-commit': 'x' })
  isDenied(there, { 'tools/hooks/x': 'y' })
  isDenied({ ...there, 'bin/ssh': '' }, { 'bin/ssh': 'x' })
  isDenied(there, { 'scripts/x.sh': 'x' })
  isDenied(there, { shared: '[core]\n\tpager = x\n' })
  isDenied(there, { 'tools/hooks': { link: '../other' }, 'tools/hooks/x': undefined })
  asks(there, { shared: '[user]\n\tname = x\n' })
  isFree({ ...there, 'scripts/z.sh': '' }, { 'tools/x.md': 'x', 'scripts/y.sh': 'x', 'bin/other.md': 'x', 'attrs.md': 'x', 'ls.md': 'x' })
  const inWorktree = { ...there, 'wt/.git': 'gitdir: ../.git/worktrees/wt\n' }
  isDenied(inWorktree, { 'wt/tools/hooks/pre-commit': 'x' })
  expect(review({}, { 'hooks/x': 'x' }, { level: 'full', runByGit: ['/home/u/ws/hooks'] })).toMatchObject({
    verdict: 'deny',
    rule: 'changes.git',
  })
})

describe('a folder that becomes a repository', () => {
  test('asks, and is refused with anything that runs programs, also when it lay there before', () => {
    const parts = { 'lib/HEAD': 'x', 'lib/objects/x': 'x', 'lib/refs/x': 'x' }
    asks({}, parts)
    asks({ 'lib/objects/x': 'x', 'lib/refs/x': 'x', 'lib/config': base }, { 'lib/HEAD': 'x' })
    const olders: readonly Tree[] = [
      { 'lib/config': evil },
      { 'lib/hooks/post-commit': 'x' },
      { 'lib/hooks': { link: '../x' } },
      { 'lib/branches/x': 'x' },
      { 'lib/config': { link: '../x' } },
    ]
    for (const older of olders) {
      isDenied(older, parts)
      isDenied({ ...older, 'lib/HEAD': 'x', 'lib/refs/x': 'x' }, { 'lib/objects/x': 'x' })
    }
    isDenied({ 'lib/HEAD': 'x' }, { 'lib/commondir': '../elsewhere' })
    isDenied({ 'x/config': evil, 'x/objects/x': '', 'x/refs/x': '' }, { 'x/worktrees/w/HEAD': 'x', 'x/worktrees/w/commondir': '../..' })
  })

  test('or that no longer takes its settings and hooks from elsewhere', () => {
    const there = { ...repository(), '.git/commondir': '/gone' }
    isDenied(there, { '.git/commondir': undefined })
  })

  test('with a part of what the command changed is judged by what is there then', () => {
    const parts = { 'lib/HEAD': 'x', 'lib/objects/x': 'x', 'lib/refs/x': 'x' }
    const before = { 'lib/hooks/post-commit': 'x', 'lib/config': evil }
    const after = { ...parts, 'lib/hooks/other.sample': '', 'lib/config': base }
    const all = changesBetween(before, after)
    const part = all.filter(({ path }) => !/hooks|config/.test(path))
    const around = { policy, level: 'full', approved: true, look: lookAt(before, after) } as const
    expect(reviewChanges(part, around).reason).toContain('"lib/hooks/post-commit": hooks are programs')
    expect(reviewChanges(part, around).reason).toContain('"lib/config": settings of git that may run programs')
    expect(
      reviewChanges(
        all.filter(({ path }) => path !== 'lib/hooks/post-commit'),
        around,
      ),
    ).toMatchObject({ verdict: 'deny' })
  })

  test('because nothing named .git hides it any more', () => {
    const masked = { 'lib/HEAD': 'x', 'lib/objects/x': 'x', 'lib/refs/x': 'x', 'lib/config': evil }
    isDenied({ ...masked, 'lib/.git': 'gitdir: ../x' }, { 'lib/.git': undefined })
    const inner = repository('lib/.git')
    isDenied({ ...masked, ...inner }, { 'lib/.git/HEAD': undefined })
  })

  test('in which hooks cannot be listed is refused', () => {
    const look = {
      read: () => undefined,
      kind: (path: string) => (/^lib(\/(objects|refs|hooks))?$/.test(path) ? ('folder' as const) : undefined),
    }
    expect(review({ 'lib/notes': 'x' }, { 'lib/HEAD': 'x' }, { look, level: 'full' })).toMatchObject({
      verdict: 'deny',
      rule: 'changes.git',
    })
  })

  test('below a name that is no UTF-8 is refused, because nobody can look beside it', () => {
    const change = { path: '\ufffd/HEAD', bytes: '/y9IRUFE', after: { kind: 'file', mode: 0o644, size: 1, sha256: 'x' } } as const
    expect(review({}, {}, {}).verdict).toBe('apply')
    expect(reviewOf([change])).toMatchObject({ verdict: 'deny', rule: 'changes.git' })
    expect(reviewOf([{ ...change, path: '\ufffd/notes' }])).toMatchObject({ verdict: 'apply' })
  })
})

describe('a file named .git', () => {
  const module = repository('.git/modules/m')

  test('asks when it leads to a repository in the workspace, and is refused otherwise', () => {
    asks({ ...repository(), '.git/worktrees/wt/gitdir': '/home/u/ws/wt/.git' }, { 'wt/.git': 'gitdir: /home/u/ws/.git/worktrees/wt\n' })
    for (const text of ['gitdir: ../../x', 'gitdir: /home/u/other/.git', 'no', '', `gitdir: ${'../'.repeat(5)}x`])
      isDenied(repository(), { 'wt/.git': text })
    isDenied({}, { '.git': { link: 'old' } })
    isDenied(module, { 'm/.git': 'gitdir: ../.git/modules/m' })
    isDenied(repository('fixtures/evil', evil), { 'm/.git': 'gitdir: ../fixtures/evil' })
    isDenied({ out: { link: '/tmp' } }, { 'm/.git': 'gitdir: ../out/x' })
    asks({ 'm/.git': 'gitdir: x' }, { 'm/.git': undefined })
  })
})
