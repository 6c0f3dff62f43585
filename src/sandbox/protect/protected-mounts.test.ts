import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { place } from '../fixture.ts'
import { openLibc } from '../libc.ts'
import { createStubs, isStub } from './placeholders.ts'
import { discover, guardsFor, MOST, protectedIn } from './protected-mounts.ts'

const guards = (
  workspace: string,
  extra: readonly string[] = [],
  repositories: readonly string[] = [''],
  names: readonly string[] = [],
) => {
  const found = guardsFor({ workspace, extra, repositories, names })
  if (!found.ok) throw new Error(found.message)
  return Object.fromEntries(found.guards.map(({ type, path }) => [path.slice(workspace.length + 1), type]))
}

describe('what is guarded', () => {
  test('a symbolic link under a protected name, or on the way to one, refuses the command', () => {
    using at = place()
    symlinkSync('/etc', join(at.workspace, '.vscode'))
    expect(guardsFor({ workspace: at.workspace, extra: [], repositories: [''] })).toEqual({
      ok: false,
      message: expect.stringContaining('.vscode: this protected name is a symbolic link'),
    })
    using other = place()
    symlinkSync('elsewhere', join(other.workspace, 'tools'))
    expect(guardsFor({ workspace: other.workspace, extra: ['tools/run.sh'], repositories: [] })).toMatchObject({ ok: false })
  })

  test('without a repository the name .git itself is held', () => {
    using at = place()
    const found = guards(at.workspace)
    expect(found).toMatchObject({
      '.git': 'absent',
      '.envrc': 'absent',
      '.mcp.json': 'absent',
      '.vscode': 'absent',
      '.idea': 'absent',
      '.braidclaw': 'absent',
      '.gitmodules': 'absent',
    })
    expect(found).not.toHaveProperty('.git/hooks')
    expect(Object.keys(found)).toHaveLength(7)
  })

  test('a repository stays writable but cannot be moved away; its hooks and settings are kept, also missing ones', () => {
    using at = place()
    mkdirSync(join(at.workspace, '.git'))
    writeFileSync(join(at.workspace, '.git/config'), '')
    expect(guards(at.workspace)).toMatchObject({
      '.git': 'pin',
      '.git/config': 'keep',
      '.git/hooks': 'absent',
      '.git/commondir': 'absent',
      '.git/config.worktree': 'absent',
    })
  })

  test('the .git file of a worktree is kept', () => {
    using at = place()
    writeFileSync(join(at.workspace, '.git'), 'gitdir: /elsewhere')
    expect(guards(at.workspace)).toMatchObject({ '.git': 'keep' })
  })

  test('pins come before what lies in them, and every folder on the way is pinned', () => {
    using at = place()
    mkdirSync(join(at.workspace, 'a/b/.git/hooks'), { recursive: true })
    const { repositories } = discover(at.workspace)
    expect(repositories).toEqual(['', 'a/b'])
    const found = guards(at.workspace, [], repositories)
    expect(found).toMatchObject({ a: 'pin', 'a/b': 'pin', 'a/b/.git': 'pin', 'a/b/.git/hooks': 'keep' })
    const paths = Object.keys(found)
    expect(paths.slice(0, 3)).toEqual(['a', 'a/b', 'a/b/.git'])
  })

  test('paths outside the workspace and the workspace itself are not its business', () => {
    const own = protectedIn({ workspace: '/w', extra: ['/etc/passwd', '../x', '/w', '.', '/w/deploy.sh', 'sub/./key'], repositories: [] })
    expect(own.slice(-2)).toEqual(['deploy.sh', 'sub/key'])
    expect(own.some((path) => path.includes('..') || path.includes('etc'))).toBe(false)
  })
})

describe('protected names that exist', () => {
  const plant = (workspace: string, ...paths: readonly string[]) => {
    for (const path of paths) {
      mkdirSync(join(workspace, path, '..'), { recursive: true })
      writeFileSync(join(workspace, path), 'mine')
    }
  }
  const kept = (workspace: string) => guardsFor({ workspace, extra: [], repositories: [''], names: discover(workspace).names })

  test('are found three folders deep, in any spelling, and not in what is only named alike', () => {
    using at = place()
    const there = [
      '.npmrc',
      'a/.vscode/tasks.json',
      'a/b/.GitHub/Workflows/ci.yml',
      'a/b/c/.envrc',
      '.local/share/systemd/user/x',
      'Mise.toml',
    ]
    plant(at.workspace, ...there, 'a/b/c/d/.envrc', 'node_modules/m/.npmrc', '.github/labels.yml', 'vscode/x', 'package.json')
    expect(discover(at.workspace).names.toSorted()).toEqual(
      ['.local/share/systemd', '.npmrc', 'Mise.toml', 'a/.vscode', 'a/b/.GitHub/Workflows', 'a/b/c/.envrc'].toSorted(),
    )
  })

  test('are read-only; only in the workspace itself the folders on the way are pinned', () => {
    using at = place()
    plant(at.workspace, '.github/workflows/ci.yml', 'a/.github/workflows/ci.yml', '.husky/pre-commit')
    const found = guards(at.workspace, [], [''], discover(at.workspace).names)
    expect(found).toMatchObject({ '.github': 'pin', '.github/workflows': 'keep', '.husky': 'keep', 'a/.github/workflows': 'keep' })
    for (const path of ['a', 'a/.github', '.husky/pre-commit']) expect(found).not.toHaveProperty(path)
  })

  test('as links do not stop a command: what they lead to is read-only, if it lies inside and is not the whole workspace', () => {
    using at = place()
    plant(at.workspace, 'shared/npmrc', 'agents/a.md')
    for (const [target, path] of [
      ['shared/npmrc', '.npmrc'],
      ['agents', '.claude'],
      ['.', '.cursor'],
      ['/etc', '.codex'],
      ['gone', '.ssh'],
    ] as const)
      symlinkSync(target, join(at.workspace, path))
    const found = guards(at.workspace, [], [''], discover(at.workspace).names)
    expect(found).toMatchObject({ 'shared/npmrc': 'keep', agents: 'keep' })
    expect(Object.values(found).filter((type) => type === 'keep')).toHaveLength(2)
  })

  test('are left out when a folder on the way has become a link, or when there are too many', () => {
    using at = place()
    plant(at.workspace, 'a/.npmrc', ...Array.from({ length: MOST + 20 }, (_, index) => `b/${index}/.npmrc`))
    const { names } = discover(at.workspace)
    renameSync(join(at.workspace, 'a'), join(at.workspace, 'c'))
    symlinkSync('..', join(at.workspace, 'a'))
    writeFileSync(join(at.root, '.npmrc'), 'outside')
    const found = guardsFor({ workspace: at.workspace, extra: [], repositories: [''], names })
    const paths = found.ok ? found.guards.filter(({ type }) => type === 'keep').map(({ path }) => path) : []
    expect(paths).toHaveLength(MOST - 1)
    expect(paths).not.toContain(join(at.workspace, 'a/.npmrc'))
    expect(kept(at.workspace)).toMatchObject({ ok: true })
  })
})

describe('place holders', () => {
  const stubsIn = (workspace: string) => createStubs({ workspace, libc: openLibc() })

  test('stand while a command runs and are gone after the last one', async () => {
    using ground = place()
    const stubs = stubsIn(ground.workspace)
    const path = join(ground.workspace, '.bashrc')
    const config = join(ground.workspace, 'commondir')
    await stubs.acquire()
    expect([stubs.make(path), stubs.make(config)]).toEqual([true, true])
    await stubs.acquire()
    stubs.release()
    expect([isStub(path), isStub(config)]).toEqual([true, true])
    stubs.release()
    expect(readdirSync(ground.workspace)).toEqual([])
  })

  test('another process that still runs a command keeps them, and takes them away when it is done', async () => {
    using ground = place()
    const [one, two] = [stubsIn(ground.workspace), stubsIn(ground.workspace)]
    const path = join(ground.workspace, '.zshrc')
    await one.acquire()
    one.make(path)
    await two.acquire()
    two.make(path)
    one.release()
    expect(isStub(path)).toBe(true)
    two.release()
    expect(existsSync(path)).toBe(false)
  })

  test('one that a crash left counts as absent and goes with the next command', async () => {
    using ground = place()
    const path = join(ground.workspace, '.git')
    mkdirSync(path, { mode: 0o1700 })
    expect(guards(ground.workspace)).toMatchObject({ '.git': 'absent' })
    const stubs = stubsIn(ground.workspace)
    await stubs.acquire()
    stubs.make(path)
    stubs.release()
    expect(existsSync(path)).toBe(false)
  })

  test('what a person put in or made is left alone', async () => {
    using ground = place()
    const stubs = stubsIn(ground.workspace)
    const [filled, own] = [join(ground.workspace, '.vscode'), join(ground.workspace, '.idea')]
    await stubs.acquire()
    stubs.make(filled)
    writeFileSync(join(filled, 'settings.json'), '{}')
    mkdirSync(own)
    stubs.release()
    expect(readdirSync(ground.workspace).toSorted()).toEqual(['.idea', '.vscode'])
    expect(readdirSync(filled)).toEqual(['settings.json'])
  })

  test('a workspace that is gone is an error, and the next one works', async () => {
    using ground = place()
    const stubs = stubsIn(join(ground.workspace, 'later'))
    await expect(stubs.acquire()).rejects.toThrow()
    mkdirSync(join(ground.workspace, 'later'))
    await stubs.acquire()
    stubs.make(join(ground.workspace, 'later/.profile'))
    stubs.release()
    expect(readdirSync(join(ground.workspace, 'later'))).toEqual([])
  })
})
