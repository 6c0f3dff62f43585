import { describe, expect, test } from 'bun:test'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { needs } from '../../../../test/support/needs.ts'
import { createFixture, type Fixture, furnish, picture } from '../fixture.ts'

type At = (path: string) => string

describe('what somebody else did while the command ran', () => {
  const cases: readonly [string, (at: At) => void, (at: At) => void, string, string][] = [
    [
      'an edit',
      (at) => writeFileSync(at('src/a.txt'), 'ours'),
      (at) => writeFileSync(at('src/a.txt'), 'theirs'),
      'src/a.txt',
      'was changed meanwhile',
    ],
    [
      'an edit that keeps size and time',
      (at) => writeFileSync(at('src/a.txt'), 'ours'),
      (at) =>
        Bun.spawnSync(['sh', '-c', 'touch -r "$1" "$1.t"; printf ALPHA > "$1"; touch -r "$1.t" "$1"; rm "$1.t"', 'sh', at('src/a.txt')]),
      'src/a.txt',
      'was changed meanwhile',
    ],
    [
      'a replacement by an older file',
      (at) => writeFileSync(at('src/a.txt'), 'ours'),
      (at) => renameSync(at('src/b.sh'), at('src/a.txt')),
      'src/a.txt',
      'was changed meanwhile',
    ],
    [
      'a change of mode',
      (at) => writeFileSync(at('src/a.txt'), 'ours'),
      (at) => chmodSync(at('src/a.txt'), 0o600),
      'src/a.txt',
      'was changed meanwhile',
    ],
    ['a deletion', (at) => writeFileSync(at('gone'), 'ours'), (at) => unlinkSync(at('gone')), 'gone', 'was deleted meanwhile'],
    ['a creation', (at) => writeFileSync(at('made'), 'ours'), (at) => writeFileSync(at('made'), 'theirs'), 'made', 'was created meanwhile'],
    ['a folder of the same name', (at) => mkdirSync(at('made')), (at) => mkdirSync(at('made')), 'made', 'was created meanwhile'],
    [
      'an edit of a file that the command deleted',
      (at) => unlinkSync(at('gone')),
      (at) => appendFileSync(at('gone'), '!'),
      'gone',
      'was changed meanwhile',
    ],
    [
      'a new file below a folder that the command deleted',
      (at) => rmSync(at('old'), { recursive: true }),
      (at) => writeFileSync(at('old/inner/new'), ''),
      'old/inner',
      'is to be deleted, but "new" was created in it meanwhile',
    ],
    [
      'an edit below a folder that the command deleted',
      (at) => rmSync(at('old'), { recursive: true }),
      (at) => writeFileSync(at('old/inner/x'), 'y'),
      'old/inner/x',
      'was changed meanwhile',
    ],
    ['another mode of a folder', (at) => chmodSync(at('src'), 0o700), (at) => chmodSync(at('src'), 0o711), 'src', 'has another mode now'],
    [
      'a folder in the place of a file',
      (at) => writeFileSync(at('gone'), 'ours'),
      (at) => {
        unlinkSync(at('gone'))
        mkdirSync(at('gone'))
      },
      'gone',
      'is a folder now',
    ],
  ]
  test.each(cases)('%s refuses the whole set, which says so', async (_, ours, theirs, path, reason) => {
    await using fixture = await createFixture()
    furnish(fixture)
    const set = await fixture.command((at) => {
      ours(at)
      writeFileSync(at('src/deep/other'), 'ours too')
    })
    theirs(fixture.at)
    const now = picture(fixture.root)
    const done = await fixture.store.apply(set)
    expect(done).toMatchObject({ ok: false, message: expect.stringContaining(`nothing was changed: ${JSON.stringify(path)} ${reason}`) })
    expect(!done.ok && done.conflicts).toContainEqual({ path, reason })
    expect(picture(fixture.root)).toEqual(now)
    expect(fixture.store.list()).toEqual([])
  })

  test('a file that merely was written right before is no conflict', async () => {
    await using fixture = await createFixture()
    for (let round = 0; round < 20; round++) {
      writeFileSync(fixture.at('f'), `${round}`)
      await fixture.applied((at) => writeFileSync(at('f'), `ours ${round}`))
    }
    expect(readFileSync(fixture.at('f'), 'utf8')).toBe('ours 19')
  })
})

test('of two commands that changed one file the second is refused; on different files both land', async () => {
  await using fixture = await createFixture()
  const { store, at } = fixture
  for (const name of ['a', 'b', 'c']) writeFileSync(at(name), 'old')
  const [first, second, third] = [
    await fixture.command((at) => writeFileSync(at('a'), 'first')),
    await fixture.command((at) => {
      writeFileSync(at('a'), 'second')
      writeFileSync(at('b'), 'second')
    }),
    await fixture.command((at) => writeFileSync(at('c'), 'third')),
  ]
  const done = await Promise.all([first, second, third].map((set) => store.apply(set)))
  expect(done).toMatchObject([{ ok: true }, { ok: false, conflicts: [{ path: 'a', reason: 'was changed meanwhile' }] }, { ok: true }])
  expect(['a', 'b', 'c'].map((name) => readFileSync(at(name), 'utf8'))).toEqual(['first', 'old', 'third'])
})

/** Holds a database open in WAL mode until the test ends. */
async function openDatabase({ at }: Fixture) {
  const shell = Bun.spawn(['sqlite3', at('data.db')], { stdio: ['pipe', 'pipe', 'inherit'] })
  shell.stdin.write("pragma journal_mode=wal; create table t(x); insert into t values('theirs'); select count(*) from t;\n")
  shell.stdin.flush()
  const reader = shell.stdout.getReader()
  for (let text = ''; !text.includes('1\n'); ) text += new TextDecoder().decode((await reader.read()).value)
  return {
    async [Symbol.asyncDispose]() {
      shell.kill('SIGKILL')
      await shell.exited
    },
  }
}

test.if(needs('sqlite3'))('a database that another program holds open is neither replaced nor removed', async () => {
  await using fixture = await createFixture()
  await using _ = await openDatabase(fixture)
  for (const name of ['data.db', 'data.db-wal']) {
    const set = await fixture.command((at) => unlinkSync(at(name)))
    expect(await fixture.store.apply(set)).toMatchObject({
      ok: false,
      conflicts: [{ path: name, reason: expect.stringContaining('holds a lock') }],
    })
  }
  const count = Bun.spawnSync(['sqlite3', fixture.at('data.db'), 'select x from t'])
  expect(count.stdout.toString()).toBe('theirs\n')
})

describe('a git index', () => {
  const git = (fixture: Fixture, ...words: string[]) =>
    Bun.spawnSync(['git', '-C', fixture.root, '-c', 'user.name=x', '-c', 'user.email=x@example.org', ...words], {
      env: { PATH: process.env.PATH, HOME: fixture.base },
    })

  test('whose times alone were refreshed outside is no conflict; one with another entry is', async () => {
    await using fixture = await createFixture()
    const { at, store } = fixture
    git(fixture, 'init', '-q')
    writeFileSync(at('a'), 'a')
    git(fixture, 'add', 'a')
    for (const refreshed of [true, false]) {
      writeFileSync(at('b'), refreshed ? 'b' : 'bb')
      const set = await fixture.command((inside) => Bun.spawnSync(['git', '-C', inside('.'), 'add', 'b']), `git-${refreshed}`)
      const before = statSync(at('.git/index')).ino
      Bun.spawnSync(['touch', at('a')])
      if (refreshed) git(fixture, 'status')
      else writeFileSync(at('c'), 'c')
      if (!refreshed) git(fixture, 'add', 'c')
      expect(statSync(at('.git/index')).ino).not.toBe(before)
      const done = await store.apply(set)
      if (refreshed) expect(done).toMatchObject({ ok: true })
      else expect(done).toMatchObject({ ok: false, conflicts: [{ path: '.git/index', reason: 'was changed meanwhile' }] })
    }
    expect(git(fixture, 'ls-files').stdout.toString()).toBe('a\nb\nc\n')
    expect(git(fixture, 'fsck').exitCode).toBe(0)
  })
})

test('what replaces a file has its owner, and what is new the owner of the workspace', async () => {
  if (process.getuid?.() !== 0) return
  await using fixture = await createFixture()
  const { root, at } = fixture
  writeFileSync(at('theirs'), 'old')
  chownSync(root, 1234, 1235)
  chownSync(at('theirs'), 4321, 4322)
  await fixture.applied((inside) => {
    writeFileSync(inside('theirs'), 'new')
    mkdirSync(inside('d'))
    writeFileSync(inside('d/new'), 'new')
  })
  const owners = ['theirs', 'd', 'd/new'].map((path) => lstatSync(at(path))).map(({ uid, gid }) => [uid, gid])
  expect(owners).toEqual([
    [4321, 4322],
    [1234, 1235],
    [1234, 1235],
  ])
})
