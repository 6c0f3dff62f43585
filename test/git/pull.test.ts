/** What fetch and pull bring is taken over by git in the sandbox and judged like the changes of every other command. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../support/needs.ts'
import { isDeep } from '../support/tier.ts'
import { alone, call, turn } from '../support/turns.ts'
import { elsewhere, gitServer, type Project, project, type Server } from './server.ts'

const real = test.if(needs('bwrap', 'git'))
const inDepth = isDeep ? real : () => {}

const state: { server?: Server } = {}
beforeAll(() => {
  state.server = gitServer()
})
afterAll(() => state.server?.[Symbol.dispose]())
const server = () => state.server ?? gitServer()

const full = (at: Project, command: string) =>
  at.run(['tool', 'run', 'shell', '--autonomy', 'full', '--json', JSON.stringify({ command })], { timeoutMs: 20_000 })
const done = async (at: Project, command: string) => {
  const { code, stdout, stderr } = await full(at, command)
  expect([command, code, stderr]).toEqual([command, 0, ''])
  return stdout
}
const whole = (at: Project) => expect(at.git('fsck', '--strict')).not.toMatch(/error|missing|broken/)

describe('fetch', () => {
  real(
    'from a listed host runs with --auto, and waits with its changes when supervised; readonly refuses it',
    async () => {
      using at = project(server())
      const theirs = elsewhere(server(), 'theirs')
      const fetch = [call('shell', { command: 'git fetch origin' }), { text: 'It said: {{last_tool_result}}' }]
      const before = server().seen.length
      expect((await turn(at, fetch, ['--autonomy', 'readonly'])).code).toBe(3)
      expect(server().seen.length).toBe(before)
      expect((await turn(at, fetch, [], { through: alone })).code).toBe(4)
      expect(at.git('rev-parse', 'origin/main')).not.toBe(theirs)
      const { code, stdout } = await turn(at, fetch, ['--auto'], { through: alone })
      expect([code, stdout]).toEqual([0, expect.stringContaining(`→ ${theirs}`)])
      expect(at.git('rev-parse', 'origin/main')).toBe(theirs)
      whole(at)
      const receipts = JSON.parse((await at.run(['receipt', 'list', '--json'])).stdout)
      expect(receipts.at(-1)).toMatchObject({ status: 'allowed', sandbox: 'none', changes: expect.stringMatching(/^[\da-f]{64}$/) })
      expect((await at.run(['undo', '--force'])).code).toBe(0)
      expect(at.git('rev-parse', 'origin/main')).not.toBe(theirs)
    },
    120_000,
  )

  inDepth(
    'follows tags, forgets what is gone, moves no branch, and works in a shallow clone',
    async () => {
      using at = project(server())
      elsewhere(server(), 'side', 'side', ['git tag -f v1'])
      await done(at, 'git fetch --tags')
      expect(at.git('for-each-ref', '--format=%(refname)', 'refs/remotes', 'refs/tags')).toBe(
        'refs/remotes/origin/main\nrefs/remotes/origin/side\nrefs/tags/v1',
      )
      server().git('branch', '-D', 'side')
      at.git('config', 'remote.origin.fetch', '+refs/heads/*:refs/heads/*')
      const theirs = elsewhere(server(), 'mirrored')
      await done(at, 'git fetch --prune')
      expect(at.git('rev-parse', 'main')).not.toBe(theirs)
      at.git('config', 'remote.origin.fetch', '+refs/heads/*:refs/remotes/origin/*')
      const told = await done(at, 'git fetch -p')
      expect(told).toContain('refs/remotes/origin/side: ')
      expect(at.git('branch', '-r')).toBe('origin/main')
      at.git('fetch', '-q', '--depth', '1', `file://${server().git('rev-parse', '--absolute-git-dir')}`, 'main')
      elsewhere(server(), 'later')
      await done(at, 'git fetch')
      whole(at)
    },
    120_000,
  )
})

describe('pull', () => {
  real(
    'goes forward, merges what is apart, rebases when the settings say so, and tells of a conflict',
    async () => {
      using at = project(server())
      elsewhere(server(), 'forward')
      expect(await done(at, 'git pull')).toContain('Fast-forward')
      expect([existsSync(join(at.workspace, 'forward')), at.git('status', '-sb')]).toEqual([true, '## main...origin/main'])
      elsewhere(server(), 'apart')
      at.commit('mine')
      expect((await full(at, 'git pull --ff-only')).stderr).toContain('Not possible to fast-forward')
      await done(at, 'git pull origin main')
      expect(at.git('log', '-1', '--format=%s %an')).toBe(`Merge branch 'main' of ${server().url.replace(/\.git$/, '')} n`)
      elsewhere(server(), 'third')
      at.commit('fourth')
      at.git('config', 'pull.rebase', 'true')
      await done(at, 'git pull -q')
      expect(at.git('log', '-3', '--format=%s')).toBe('fourth\nmine\nthird')
      at.git('config', '--unset', 'pull.rebase')
      elsewhere(server(), 'clash')
      at.commit('clash', 'of my own')
      const { code, stdout, stderr } = await full(at, 'git pull')
      expect([code, stdout + stderr]).toEqual([1, expect.stringContaining('CONFLICT (add/add): Merge conflict in clash')])
      expect([at.git('status', '--short'), readFileSync(join(at.workspace, 'clash'), 'utf8')]).toEqual([
        'AA clash',
        expect.stringContaining('<<<<<<<'),
      ])
      whole(at)
    },
    120_000,
  )

  inDepth(
    'without an upstream says what to name; in a script it stays in the sandbox, where no key is',
    async () => {
      using at = project(server())
      at.git('checkout', '-q', '-b', 'loose')
      expect((await full(at, 'git pull')).stderr).toContain('git pull origin main')
      expect((await full(at, 'git push')).code).toBe(0)
      expect(server().git('rev-parse', 'loose')).toBe(at.git('rev-parse', 'loose'))
      const before = server().seen.length
      expect((await full(at, 'git fetch; true')).stderr).not.toContain('outside the sandbox')
      expect(server().seen.length).toBe(before)
      server().git('branch', '-D', 'loose')
    },
    120_000,
  )
})

describe('a linked worktree', () => {
  inDepth(
    'in the workspace fetches and pushes its own branch',
    async () => {
      using at = project(server())
      at.git('worktree', 'add', '-q', 'wt', '-b', 'linked')
      at.git('-C', 'wt', 'commit', '-q', '--allow-empty', '-m', 'there')
      const theirs = elsewhere(server(), 'beside')
      await done(at, 'git -C wt fetch')
      expect(at.git('rev-parse', 'origin/main')).toBe(theirs)
      await done(at, 'git -C wt push -u origin linked')
      expect(server().git('rev-parse', 'linked')).toBe(at.git('-C', 'wt', 'rev-parse', 'HEAD'))
      expect(at.git('-C', 'wt', 'status', '-sb')).toBe('## linked...origin/linked')
      server().git('branch', '-D', 'linked')
      whole(at)
    },
    120_000,
  )

  real(
    'of a repository outside fetches and pushes; a .git file alone opens no repository',
    async () => {
      using at = project(server())
      at.git('worktree', 'add', '-q', join(at.dir, 'wt'), '-b', 'away')
      at.git('-C', join(at.dir, 'wt'), 'commit', '-q', '--allow-empty', '-m', 'away')
      const run = (command: string) =>
        at.run(['tool', 'run', 'shell', '--autonomy', 'full', '--workspace', join(at.dir, 'wt'), '--json', JSON.stringify({ command })], {
          timeoutMs: 20_000,
        })
      expect((await run('git fetch')).code).toBe(0)
      expect((await run('git push origin away')).code).toBe(0)
      expect(server().git('log', '-1', '--format=%s', 'away')).toBe('away')
      server().git('branch', '-D', 'away')
      Bun.spawnSync(['sh', '-c', `mkdir forged && echo "gitdir: ${join(at.workspace, '.git')}" > forged/.git`], { cwd: at.dir })
      const before = server().seen.length
      const forged = JSON.stringify({ command: 'git push origin main' })
      await at.run(['tool', 'run', 'shell', '--autonomy', 'full', '--workspace', join(at.dir, 'forged'), '--json', forged])
      expect(server().seen.length).toBe(before)
    },
    120_000,
  )
})

describe('in a repository outside the workspace', () => {
  real(
    'a linked worktree is pulled into and pushed from; a folder of a repository fetches, and a pull that changes files beside it is refused',
    async () => {
      using at = project(server())
      at.file('pkg/b.txt', 'b\n')
      at.git('add', 'pkg')
      at.git('commit', '-qm', 'pkg')
      const [linked, pkg] = [join(realpathSync(at.dir), 'linked'), join(realpathSync(at.workspace), 'pkg')]
      at.git('worktree', 'add', '-q', '-b', 'side', linked, 'origin/main')
      const run = async (cwd: string, command: string) =>
        (
          await turn(at, [call('shell', { command }), { text: '{{last_tool_result}}' }], ['--autonomy', 'full', '-C', cwd], {
            cwd,
            through: alone,
          })
        ).stdout
      const theirs = elsewhere(server(), 'theirs')
      expect(await run(linked, 'git pull origin main')).toContain(`→ ${theirs}`)
      expect(at.git('-C', linked, 'rev-parse', 'HEAD')).toBe(theirs)
      expect(at.git('-C', linked, 'status', '--porcelain')).toBe('')
      expect(await run(linked, 'git push origin side')).toContain('refs/heads/side')
      expect(server().git('rev-parse', 'side')).toBe(theirs)
      const later = elsewhere(server(), 'later')
      expect(await run(pkg, 'git fetch origin')).toContain(`→ ${later}`)
      expect(at.git('rev-parse', 'origin/main')).toBe(later)
      const before = at.git('rev-parse', 'HEAD')
      expect(await run(pkg, 'git pull origin main')).toContain('beside the workspace, where no command writes')
      expect([at.git('rev-parse', 'HEAD'), at.git('status', '--porcelain')]).toEqual([before, ''])
      whole(at)
    },
    120_000,
  )
})
