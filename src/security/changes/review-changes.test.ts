import { describe, expect, test } from 'bun:test'
import { protectedNames } from '../targets/protected.ts'
import { beyondLimits } from './harmless/harmless.ts'
import { runUnaskedNames } from './harmless/run-unasked.ts'
import { type FixtureEntry, lookAt, policy, review } from './review.fixture.ts'
import { reviewChanges } from './review-changes.ts'

const deny = (rule: string) => expect.objectContaining({ verdict: 'deny', rule })
const ask = (rule: string) => expect.objectContaining({ verdict: 'ask', rule })
const apply = (rule: string) => expect.objectContaining({ verdict: 'apply', rule })

describe('a change set is dropped, at every level and whatever was approved, with', () => {
  const denied = (
    change: { readonly [path: string]: FixtureEntry },
    rule: string,
    before: { readonly [path: string]: FixtureEntry } = {},
  ) => {
    for (const level of ['supervised', 'auto', 'full'] as const)
      for (const approved of [false, true]) expect(review(before, { 'fine.txt': 'x', ...change }, { level, approved })).toEqual(deny(rule))
  }

  test('a protected name at any depth, new, changed or deleted', () => {
    for (const above of ['', 'a/', 'a/b/c/d/e/']) {
      denied({ [`${above}.envrc`]: 'x' }, 'changes.protected')
      denied({ [`${above}.VSCode/tasks.json`]: 'x' }, 'changes.protected')
      expect(review({ [`${above}.npmrc`]: 'x' }, { [`${above}.npmrc`]: 'y' }, { level: 'full' })).toEqual(deny('changes.protected'))
      expect(review({ [`${above}.npmrc`]: 'x' }, { [`${above}.npmrc`]: undefined }, { level: 'full' })).toEqual(deny('changes.protected'))
    }
  })

  test.each(protectedNames.filter((name) => name !== '.git'))(
    'the protected name %s, at depths 0, 1 and 5, in three spellings, as file and folder',
    (name) => {
      for (const above of ['', 'a/', 'a/b/c/d/e/'])
        for (const spelling of [name, name.toUpperCase(), `${name.slice(0, 2)}\u200c${name.slice(2)}`])
          for (const path of [above + spelling, `${above + spelling}/inner`])
            expect([path, review({}, { 'fine.txt': 'x', [path]: 'x' }, { level: 'full', approved: true })]).toEqual([
              path,
              deny('changes.protected'),
            ])
    },
  )

  test('a .git in another spelling', () => {
    for (const name of ['.GIT', '.git.', 'git~1', '.g\u200cit', '.git:x']) denied({ [`a/${name}/config`]: 'x' }, 'changes.protected')
  })

  test('a change of what a link with a protected name leads to', () => {
    denied({ 'agents/a.md': 'x' }, 'changes.protected', { '.claude': { link: 'agents' }, 'agents/a.md': '' })
    denied({ 'gh/workflows/ci.yml': 'x' }, 'changes.protected', { '.github': { link: './gh' }, 'gh/labels.yml': '' })
    denied({ 'ci/ci.yml': 'x' }, 'changes.protected', { '.github/workflows': { link: '../ci' }, 'ci/x.yml': '' })
    denied({ 'a/deep/rc': 'x' }, 'changes.protected', { 'a/.npmrc': { link: 'deep/rc' } })
    expect(review({ '.github': { link: './gh' }, 'gh/labels.yml': '' }, { 'gh/labels.yml': 'x' })).toEqual(apply('changes.harmless'))
  })

  test('a path below a forbidden one, in any case, or below our own files', () => {
    const context = {
      policy: { ...policy, forbiddenPaths: ['secret', '/home/u/ws/other'], protectedPaths: ['/home/u/ws/state', '/home/u'] },
    }
    for (const path of ['secret', 'secret/key', 'SECRET/key', 'other/x'])
      expect(review({}, { [path]: 'x' }, { ...context, level: 'full' })).toEqual(deny('changes.forbidden'))
    expect(review({}, { 'state/x': 'x' }, { ...context, level: 'full' })).toEqual(deny('changes.protected'))
    expect(review({}, { 'secrets.txt': 'x', link: 'secret' }, { ...context, level: 'full' })).toEqual(apply('autonomy.full'))
    expect(review({}, { link: { link: 'secret/key' } }, { ...context, level: 'full' })).toEqual(deny('changes.forbidden'))
  })

  test('a file that must not be read', () => {
    const isForbiddenRead = (path: string) => path.endsWith('.pem')
    expect(review({}, { 'a/key.pem': 'x' }, { isForbiddenRead, level: 'full', approved: true })).toEqual(deny('changes.forbidden'))
  })

  test('a link that leads out, directly, through another link, or nowhere that can be found', () => {
    for (const target of [
      '/etc/passwd',
      '../../x',
      '/home/u/wsx',
      '/usr/../etc/passwd',
      'a/../../../x',
      '/home/u/ws/../x',
      '/optional',
      '\ufffd/x',
    ])
      denied({ 'd/link': { link: target } }, 'changes.link')
    denied({ one: { link: 'two/x' }, two: { link: 'three' } }, 'changes.link', { three: { link: '/etc' } })
    denied({ one: { link: 'two' }, two: { link: 'one' } }, 'changes.link')
    denied({ link: { link: '../up/x' } }, 'changes.link')
    expect(review({ out: { link: '/etc' } }, { 'a/b': { link: '../out/passwd' } }, { level: 'full' })).toEqual(deny('changes.link'))
    expect(review({ old: { link: 'a' } }, { old: { link: '/etc' } }, { level: 'full' })).toEqual(deny('changes.link'))
  })
})

test('links inside, to system folders and to tool chains may be made; only the level full makes them without a question', () => {
  const targets = ['a', './a/../b', '/home/u/ws/a', '../ws/a', '/usr/bin/python3', '/nix/store/x', '/home/u/.nvm/bin/node', 'gone/later']
  for (const target of targets) {
    const readOnlyFolders = () => ['/home/u/.nvm']
    expect([target, review({}, { link: { link: target } }, { level: 'full', readOnlyFolders })]).toEqual([target, apply('autonomy.full')])
    expect(review({}, { link: { link: target } }, { readOnlyFolders })).toEqual(ask('changes.not_harmless'))
  }
})

test('a link to a plain file of the workspace is as harmless as a copy; every other link asks in auto', () => {
  const there = {
    'docs/a.md': 'x',
    'run.sh': { file: 'x', mode: 0o755 },
    Makefile: 'x',
    'sub/package.json': '{}',
    'yarn.lock': 'x',
    '.git/HEAD': 'x',
    '.env': 'x',
    folder: { folder: true },
    'plain.md': { link: 'docs/a.md' },
  } as const
  const around = { policy: { ...policy, forbiddenReads: ['**/.env'] } }
  for (const target of ['docs/a.md', './docs/../docs/a.md', '/home/u/ws/docs/a.md', 'plain.md'])
    expect([target, review(there, { 'b.md': { link: target } }, around)]).toEqual([target, apply('changes.harmless')])
  expect(review(there, { 'x/b.md': { link: '../new.md' }, 'new.md': 'x' }, around)).toEqual(apply('changes.harmless'))
  expect(review(there, { 'plain.md': { link: 'folder/../docs/a.md' } }, around)).toEqual(apply('changes.harmless'))
  const more = [
    'run.sh',
    'Makefile',
    'sub/package.json',
    'yarn.lock',
    '.git/HEAD',
    '.env',
    'folder',
    'docs',
    '.',
    'gone',
    '/usr/bin/python3',
  ]
  for (const target of more)
    expect([target, review(there, { 'b.md': { link: target } }, around)]).toEqual([target, ask('changes.not_harmless')])
  for (const name of ['conftest.py', 'a/Makefile', 'package.json', 'bun.lock', 'node_modules/x', 'b', 'x/b.ts'])
    expect([name, review(there, { [name]: { link: '/home/u/ws/docs/a.md' } }, around)]).toEqual([name, ask('changes.not_harmless')])
  for (const odd of [{ folder: true, mode: 0o644 }, { other: true }] as const)
    expect(review({ odd }, { 'b.md': { link: 'odd' } })).toEqual(ask('changes.not_harmless'))
  expect(review({ 'a.md': 'x', pipe: { other: true } }, { pipe: { link: 'a.md' } })).toEqual(ask('changes.not_harmless'))
  const bytes = { path: '\ufffd', bytes: '/w==', after: { kind: 'link', mode: 0o777, target: 'docs/a.md' } } as const
  expect(reviewChanges([bytes], { policy, level: 'auto', approved: false, look: lookAt(there, there) })).toEqual(
    ask('changes.not_harmless'),
  )
  const { mode, ...unsure } = lookAt(there, { ...there, 'b.md': { link: 'docs/a.md' } })
  expect(mode).toBeDefined()
  expect(review(there, { 'b.md': { link: 'docs/a.md' } }, { ...around, look: unsure })).toEqual(ask('changes.not_harmless'))
})

test('the first ten refused paths are named, and how many more there are', () => {
  const names = protectedNames.filter((name) => name !== '.git').slice(0, 15)
  const { reason } = review({}, Object.fromEntries(names.map((name) => [`z/${name}`, 'x'])))
  expect(reason).toMatch(/^"z\/[^"]+"(, "[^"]+"){9}: other programs run or obey it; and \d+ more paths\. Nothing was applied/)
})

describe('without a refusal', () => {
  test('no change is applied at every level, and readonly drops any', () => {
    for (const level of ['readonly', 'supervised', 'auto', 'full'] as const)
      expect(review({ a: 'x' }, {}, { level })).toMatchObject({
        verdict: 'apply',
        rule: 'changes.none',
        count: 0,
        summary: 'nothing changed',
      })
    expect(review({}, { a: 'x' }, { level: 'readonly', approved: true })).toEqual(deny('changes.readonly'))
  })

  test('supervised asks, unless a person approved the command; full applies', () => {
    expect(review({}, { a: 'x' }, { level: 'supervised' })).toEqual(ask('changes.supervised'))
    expect(review({}, { a: 'x' }, { level: 'supervised', approved: true })).toEqual(apply('changes.approved'))
    expect(review({}, { Makefile: 'x' }, { level: 'full' })).toEqual(apply('autonomy.full'))
  })

  test('auto applies regular files and folders and asks about the rest', () => {
    expect(review({ 'b.txt': '1', 'src/b.ts': '' }, { 'src/a.ts': 'x', 'b.txt': '2', 'new/folder': { folder: true } })).toEqual(
      apply('changes.harmless'),
    )
    expect(review({ 'b.txt': '1' }, { 'b.txt': undefined })).toEqual(apply('changes.harmless'))
    const doubtful: readonly (readonly [string, FixtureEntry])[] = [
      ['run.sh', { file: '#!/bin/sh', mode: 0o755 }],
      ['link', { link: 'a' }],
      ['wide.md', { file: 'x', mode: 0o646 }],
      ['wide', { folder: true, mode: 0o777 }],
      ['sub/Makefile', 'x'],
      ['conftest.py', 'x'],
      ['a/b/sitecustomize.py', 'x'],
      ['x.pth', 'x'],
      ['node_modules/m/index.js', 'x'],
      ['vite.config.ts', 'x'],
      ['CLAUDE.md', 'x'],
      ['package.json', '{"scripts":{"test":"x"}}'],
      ['yarn.lock', 'resolved "https://evil.example/x.tgz"'],
    ]
    for (const [path, entry] of doubtful) expect([path, review({}, { [path]: entry })]).toEqual([path, ask('changes.not_harmless')])
  })

  test('each name of the list of what tools run unasked asks in auto, at any depth and in any case', () => {
    for (const name of runUnaskedNames)
      for (const above of ['', 'a/b/']) {
        const path = above + name.replace(/^\.\*/, '.x').replaceAll('*', 'x').replace(/\/$/, '/inner.txt').toUpperCase()
        expect([path, review({}, { [path]: 'x' })]).toEqual([path, ask('changes.not_harmless')])
      }
  })

  test('other content of an executable asks, and so does a file that becomes one', () => {
    const script = (text: string, mode: number): FixtureEntry => ({ file: text, mode })
    expect(review({ 'run.sh': script('a', 0o755) }, { 'run.sh': script('b', 0o755) })).toEqual(ask('changes.not_harmless'))
    expect(review({ 'run.sh': script('a', 0o755) }, { 'run.sh': script('b', 0o644) })).toEqual(ask('changes.not_harmless'))
    expect(review({ 'run.sh': script('a', 0o755) }, { 'run.sh': undefined })).toEqual(apply('changes.harmless'))
    expect(review({ 'run.sh': script('a', 0o644) }, { 'run.sh': script('a', 0o755) })).toEqual(ask('changes.not_harmless'))
    expect(review({ 'run.sh': script('a', 0o744) }, { 'run.sh': script('a', 0o644) })).toEqual(apply('changes.harmless'))
  })

  test('of a manifest only the description is harmless, of a lock file only hosts it already had', () => {
    const json = (fields: object) => JSON.stringify({ name: 'a', scripts: { test: 'x' }, dependencies: { a: '1' }, ...fields })
    const of = (file: string, before: string, after: string) => review({ [file]: before }, { [file]: after }).verdict
    expect(of('package.json', json({}), json({ version: '2', description: 'd' }))).toBe('apply')
    for (const fields of [{ scripts: { test: 'y' } }, { dependencies: { a: '2' } }, { bin: 'x' }])
      expect(of('package.json', json({}), json(fields))).toBe('ask')
    expect(of('package.json', '{', json({}))).toBe('ask')
    const toml = (version: string, more = '') => `[project]\nname = "a"\nversion = "${version}"\n${more}`
    expect(of('pyproject.toml', toml('1'), toml('2'))).toBe('apply')
    expect(of('pyproject.toml', toml('1'), toml('1', '[build-system]\nrequires = ["x"]'))).toBe('ask')
    expect(of('Cargo.toml', '[package]\nversion = "1"', '[package]\nversion = "1"\nbuild = "x.rs"')).toBe('ask')
    expect(of('yarn.lock', 'https://a.example/x', 'https://a.example/y')).toBe('apply')
    expect(of('yarn.lock', 'https://a.example/x', 'https://b.example/x')).toBe('ask')
    expect(of('package-lock.json', '', 'git+ssh://git@evil.example/x')).toBe('ask')
  })

  test('many deletions, large files and many changes ask in auto', () => {
    const files = (number: number) => Object.fromEntries(Array.from({ length: number }, (_, index) => [`f${index}.md`, 'x']))
    const none = (number: number) => Object.fromEntries(Array.from({ length: number }, (_, index) => [`f${index}.md`, undefined]))
    expect(review(files(51), none(51))).toEqual(ask('changes.limits'))
    expect(review(files(51), none(50))).toEqual(apply('changes.harmless'))
    expect(review({}, files(5001))).toEqual(ask('changes.limits'))
    expect(review({}, files(5000))).toEqual(apply('changes.harmless'))
    expect(review({}, files(5001), { approved: true })).toEqual(apply('changes.approved'))
  })

  test('deleting what a tool runs unasked, and replacing a pipe, ask in auto', () => {
    expect(review({ Makefile: 'x' }, { Makefile: undefined })).toEqual(ask('changes.not_harmless'))
    expect(review({ p: { other: true } }, { p: 'x' })).toEqual(ask('changes.not_harmless'))
  })

  test('more than 256 MiB ask, and single objects of git count as deleted unless it was read what its history needs', () => {
    const file = (size: number) => ({ path: 'a', after: { kind: 'file' as const, mode: 0o644, size } })
    expect([beyondLimits([file(2 ** 28)], true), beyondLimits([file(2 ** 28 + 1)], true)]).toEqual([
      undefined,
      '257 MiB would be written, more than 256',
    ])
    const was = { before: { kind: 'file' as const, mode: 0o444, size: 9 } }
    const objects = Array.from({ length: 51 }, (_, at) => ({ path: `.git/objects/ab/${at}`, ...was }))
    expect(beyondLimits(objects, false)).toStartWith('51 files would be deleted or emptied')
    expect(beyondLimits(objects, true)).toBeUndefined()
    expect(
      beyondLimits(
        objects.map(({ path, ...rest }) => ({ path: path.slice(5), ...rest })),
        true,
      ),
    ).toStartWith('51 files')
  })

  test('a workspace that is protected itself is left alone altogether', () => {
    const all = { ...policy, protectedPaths: [policy.workspace] }
    expect(review({}, { 'a/b': 'x' }, { policy: all, level: 'full', approved: true })).toMatchObject({
      verdict: 'deny',
      rule: 'changes.protected',
    })
  })

  test('a registered secret in a new or changed file asks, also beside other questions', () => {
    const hasSecret = (content: Uint8Array) => new TextDecoder().decode(content).includes('s3cr3t')
    expect(review({}, { 'a.txt': 'key=s3cr3t' }, { hasSecret })).toEqual(ask('changes.secret'))
    expect(review({ 'a.txt': '' }, { 'a.txt': 's3cr3t', Makefile: '' }, { hasSecret, level: 'supervised' })).toEqual(ask('changes.secret'))
    expect(review({}, { 'a.txt': 'key' }, { hasSecret })).toEqual(apply('changes.harmless'))
  })

  test('pipes and set-user-ID bits do not hold up the rest: they are left out, and the reason says so', () => {
    const both = review({}, { 'a.txt': 'x', pipe: { other: true }, su: { file: 'x', mode: 0o4644 } }, { level: 'full' })
    expect(both).toEqual(apply('autonomy.full'))
    expect(both.reason).toContain('left out: 1 of the kinds pipe, socket and device')
    expect(both.reason).toContain('sticky bits of 1 path are cleared')
  })
})

test("a rule of the operator's decides before any yes and any level, but not over what is denied anyway", () => {
  for (const level of ['supervised', 'auto', 'full'] as const)
    for (const approved of [true, false])
      for (const verdict of ['deny', 'ask'] as const) {
        const ruled = { verdict, rule: 'rule.x', reason: 'because' } as const
        expect(review({}, { a: 'x' }, { level, approved, ruled })).toMatchObject({
          verdict,
          rule: 'rule.x',
          reason: expect.stringContaining('because'),
        })
        expect(review({}, { '.envrc': 'x' }, { level, approved, ruled })).toMatchObject({ verdict: 'deny', rule: 'changes.protected' })
      }
})

test('a look that fails denies', () => {
  const look = {
    read: () => undefined,
    kind: () => {
      throw new Error('disk')
    },
  }
  expect(review({}, { 'a/b': { link: 'c' } }, { level: 'full', look })).toMatchObject({ verdict: 'deny', rule: 'gate.error' })
})
