import { dlopen } from 'bun:ffi'
import { describe, expect, test } from 'bun:test'
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../../../test/support/needs.ts'
import type { ToApply } from './contract.ts'
import { about, changesBetween, createFixture, createView, type Fixture, furnish, picture } from './fixture.ts'

const canMount = Bun.spawnSync(['unshare', '-Urm', 'true']).exitCode === 0
if (!canMount) console.warn('real overlays are not tested: there is no user namespace to mount one in')

/** Runs a command on a real overlay of the workspace, whose upper layer is the private view, and copies what it sees at the end. */
async function overlaid({ root, options }: Fixture, command: string): Promise<ToApply & { readonly wanted: ReturnType<typeof picture> }> {
  const id = 'tx-real'
  const view = createView(join(options.folder, id), root)
  mkdirSync(join(view, 'mnt'))
  symlinkSync(root, join(view, 'lower'))
  const script = `cd "$1" && mount -i -n -t overlay overlay -o lowerdir=lower,upperdir=up,workdir=work,userxattr,volatile mnt && (cd mnt && eval "$2") && cp -a mnt seen`
  const ran = Bun.spawnSync(['unshare', '-Urm', 'sh', '-c', script, 'sh', view, command], { env: { PATH: process.env.PATH, HOME: view } })
  expect(ran.stderr.toString()).toBe('')
  const seen = join(view, 'seen')
  const set = { id, about, changes: changesBetween(root, seen), wanted: picture(seen) }
  Bun.spawnSync(['rm', '-rf', seen])
  return set
}

/** Names of all extended attributes below a folder, without those of security modules. */
function attributesBelow(root: string): string[] {
  const { symbols: libc } = dlopen('libc.so.6', { llistxattr: { args: ['ptr', 'ptr', 'u64'], returns: 'i64' } })
  const list = Buffer.alloc(65_536)
  return readdirSync(root, { recursive: true, encoding: 'utf8' }).flatMap((name) => {
    const size = Number(libc.llistxattr(Buffer.from(`${join(root, name)}\0`), list, list.length))
    const names = size > 0 ? list.toString('latin1', 0, size).split('\0') : []
    return names.filter((one) => one.startsWith('user.')).map((one) => `${name} ${one}`)
  })
}

describe.if(canMount)('a command on a real overlay', () => {
  test.if(needs('python3'))('is applied with copied files, opaque folders and whiteouts, and nothing of the overlay stays', async () => {
    await using fixture = await createFixture()
    furnish(fixture)
    const before = picture(fixture.root)
    const set = await overlaid(
      fixture,
      `echo more >> src/a.txt; chmod 600 src/b.sh; rm gone; rm -r old; mkdir old; echo x > old/again; rm link; ln -s src link
       mv src/deep/c moved; python3 -c 'import os; os.setxattr("moved", "user.overlay.opaque", b"y"); os.setxattr("moved", "user.mine", b"1")'`,
    )
    expect(existsSync(join(fixture.options.folder, 'tx-real/up/old'))).toBe(true)
    expect(attributesBelow(join(fixture.options.folder, 'tx-real/up'))).toContainEqual(expect.stringContaining('user.overlay.'))
    expect(await fixture.store.apply(set)).toEqual({ ok: true, count: set.changes?.length ?? 0 })
    expect(picture(fixture.root)).toEqual(set.wanted)
    expect(attributesBelow(fixture.root)).toEqual(['moved user.mine'])
    expect(await fixture.store.undo(set.id)).toMatchObject({ ok: true })
    expect(picture(fixture.root)).toEqual(before)
  })

  test.if(needs('git', 'make'))('git and make work in it, and find nothing to do in the workspace afterwards', async () => {
    await using fixture = await createFixture()
    const { root, at, base } = fixture
    const env = { PATH: process.env.PATH, HOME: base, GIT_CONFIG_NOSYSTEM: '1' }
    const git = (...words: string[]) =>
      Bun.spawnSync(['git', '-C', root, '-c', 'user.name=x', '-c', 'user.email=x@example.org', ...words], { env })
    git('init', '-q')
    writeFileSync(at('Makefile'), 'out: in\n\tcat in > out\n')
    writeFileSync(at('in'), 'content')
    git('add', '.')
    git('commit', '-qm', 'one')
    const set = await overlaid(
      fixture,
      `export GIT_OPTIONAL_LOCKS=0 GIT_CONFIG_COUNT=3 GIT_CONFIG_KEY_0=user.name GIT_CONFIG_VALUE_0=x GIT_CONFIG_KEY_1=user.email GIT_CONFIG_VALUE_1=x@x.org GIT_CONFIG_KEY_2=safe.directory GIT_CONFIG_VALUE_2='*'
       make -s; git add out; git commit -qm two; git checkout -qb side; echo side > file; git add file; git commit -qm three; git gc -q`,
    )
    expect(await fixture.store.apply(set)).toMatchObject({ ok: true })
    expect(git('status', '--porcelain').stdout.toString()).toBe('')
    expect(git('log', '--format=%s').stdout.toString()).toBe('three\ntwo\none\n')
    expect(git('fsck', '--strict').exitCode).toBe(0)
    expect(Bun.spawnSync(['make', '-C', root, '-q']).exitCode).toBe(0)
    Bun.spawnSync(['touch', at('in')])
    git('status')
    expect(await fixture.store.undo(set.id)).toMatchObject({ ok: true })
    expect(git('log', '--format=%s').stdout.toString()).toBe('one\n')
    expect(git('fsck', '--strict').exitCode).toBe(0)
    expect(readFileSync(at('in'), 'utf8')).toBe('content')
    expect(lstatSync(at('out'), { throwIfNoEntry: false })).toBeUndefined()
  })
})
